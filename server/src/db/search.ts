import { sql } from 'kysely';

/**
 * Whether a column holds a text, taken literally. Both are to be folded already (`foldCase`).
 * @param column of the query that this becomes part of, such as `users.name_key`
 */
export function contains(column: string, text: string) {
  const pattern = `%${text.replace(/[\\%_]/g, '\\$&')}%`;
  return sql<boolean>`${sql.ref(column)} like ${pattern} escape '\\'`;
}
