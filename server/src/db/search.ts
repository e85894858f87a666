import { sql } from 'kysely';

/**
 * Expression that is true when a column contains a text, taken literally. Both must be folded already (`foldCase`).
 * @param column of the query that this becomes part of, such as `users.name_key`
 */
export function contains(column: string, text: string) {
  // A pattern with a long text in it takes time that grows with both lengths multiplied.
  return sql<boolean>`instr(${sql.ref(column)}, ${text}) > 0`;
}
