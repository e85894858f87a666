import { sql } from 'kysely';
import type { Reader } from '../database.ts';

/** A table as it is moved. */
export interface MovedTable {
  readonly name: string;
  readonly columns: readonly string[];
  /** Of the primary key, in its order. */
  readonly key: readonly [string, ...string[]];
  readonly rows: number;
}

interface Described extends MovedTable {
  /** The tables that it refers to. */
  readonly needs: readonly string[];
}

async function selectNames(read: Reader): Promise<readonly string[]> {
  const { rows } = await sql<{ name: string }>`
    select name from sqlite_master where type = 'table' and name not like 'sqlite^_%' escape '^' order by name
  `.execute(read);
  return rows.map(({ name }) => name);
}

async function describeTable(read: Reader, name: string): Promise<Described> {
  const columns = await sql<{ name: string; place: number }>`
    select name, pk as place from pragma_table_info(${name}) order by cid
  `.execute(read);
  const needs = await sql<{ name: string }>`
    select distinct "table" as name from pragma_foreign_key_list(${name})
  `.execute(read);
  const counted = await sql<{ rows: number }>`select count(*) as rows from ${sql.table(name)}`.execute(read);
  const ofKey = columns.rows.filter(({ place }) => place > 0).sort((one, other) => one.place - other.place);
  const [first, ...others] = ofKey.map((column) => column.name);
  if (first === undefined) throw new Error(`the table ${name} has no primary key`);
  return {
    name,
    columns: columns.rows.map((column) => column.name),
    key: [first, ...others],
    rows: counted.rows[0]?.rows ?? 0,
    needs: needs.rows.map((needed) => needed.name).filter((needed) => needed !== name),
  };
}

/** Every table that is there in an embedded store, each after those that it refers to. */
export async function describeTables(read: Reader): Promise<readonly MovedTable[]> {
  const left = new Map<string, Described>();
  for (const name of await selectNames(read)) left.set(name, await describeTable(read, name));
  const ordered: MovedTable[] = [];
  while (left.size > 0) {
    const next = [...left.values()].find(({ needs }) => !needs.some((name) => left.has(name)));
    if (!next) throw new Error(`the tables ${[...left.keys()].join(', ')} refer to each other in a circle`);
    left.delete(next.name);
    ordered.push(next);
  }
  return ordered;
}
