import { createHash } from 'node:crypto';
import { sql } from 'kysely';
import { StartupError } from '../../base/errors.ts';
import type { Database, Reader } from '../database.ts';
import { isStoreFailure } from '../failures.ts';
import type { MovedTable } from './moved-tables.ts';

/** Bytes of rows that are held at once, whatever their size. */
const pageBytes = 2_000_000;
const pageRowsMin = 20;
const pageRowsMax = 4_000;
const firstPageRows = 200;

type Row = Readonly<Record<string, unknown>>;

/** Number of rows of a table and a checksum of them. */
export interface TableChecksum {
  readonly rows: number;
  /** SHA-256, in hexadecimal, of every row as a line of JSON, in the order of the primary key; the same on both engines. */
  readonly digest: string;
}

interface Page {
  readonly rows: readonly Row[];
  /** A line of JSON for each. */
  readonly lines: string;
}

/** Both engines compare texts by their bytes, and tuples one column after another. */
function selectPage({ name, columns, key }: MovedTable, after: Row | undefined, limit: number) {
  const list = (names: readonly string[]) => sql.join(names.map((column) => sql.ref(column)));
  const since = after && sql`where (${list(key)}) > (${sql.join(key.map((column) => after[column]))})`;
  return sql<Row>`
    select ${list(columns)} from ${sql.table(name)} ${since ?? sql``} order by ${list(key)} limit ${sql.lit(limit)}
  `;
}

/** All rows of a table by its primary key, some at a time. */
async function* pagesOf(read: Reader, table: MovedTable): AsyncGenerator<Page> {
  let limit = firstPageRows;
  let last: Row | undefined;
  for (;;) {
    const { rows } = await selectPage(table, last, limit).execute(read);
    if (rows.length === 0) return;
    const lines = rows.map((row) => `${JSON.stringify(table.columns.map((column) => row[column]))}\n`).join('');
    yield { rows, lines };
    if (rows.length < limit) return;
    last = rows.at(-1);
    const fitting = Math.floor((pageBytes * rows.length) / lines.length);
    limit = Math.max(pageRowsMin, Math.min(pageRowsMax, fitting));
  }
}

/** One statement with one parameter, however many rows: each as an object that is named by its columns. */
async function insertRows(target: Database, { name, columns }: MovedTable, rows: readonly Row[]): Promise<void> {
  const list = sql.join(columns.map((column) => sql.ref(column)));
  const table = sql.table(name);
  await target.transaction((tx) =>
    sql`insert into ${table} (${list}) select ${list} from json_populate_recordset(null::${table}, ${JSON.stringify(rows)}::json)`.execute(
      tx,
    ),
  );
}

function notCopied({ name }: MovedTable, error: unknown): unknown {
  if (!(error instanceof Error) || isStoreFailure(error)) return error;
  return new StartupError(`The table ${name} cannot be copied: ${error.message}`, { cause: error });
}

interface Copying {
  /** An open transaction of the embedded store, so that nothing changes meanwhile. */
  readonly source: Reader;
  readonly target: Database;
  /** Called with how many rows were copied. */
  readonly advance: (rows: number) => void;
}

/**
 * Copies a table into an empty one; returns the checksum of what was read. While some rows are written, the next ones
 * are read. Throws StartupError for rows that the target rejects.
 */
export async function copyTable({ source, target, advance }: Copying, table: MovedTable): Promise<TableChecksum> {
  const hash = createHash('sha256');
  let rows = 0;
  let writing: Promise<void> = Promise.resolve();
  for await (const page of pagesOf(source, table)) {
    hash.update(page.lines);
    await writing;
    advance(page.rows.length);
    rows += page.rows.length;
    writing = insertRows(target, table, page.rows).catch((error: unknown) => {
      throw notCopied(table, error);
    });
    // Awaited with the next page; until then its rejection must not count as unhandled.
    writing.catch(() => {});
  }
  await writing;
  return { rows, digest: hash.digest('hex') };
}

/** Reads a table again and returns its checksum. */
export async function checksumOfTable(
  read: Reader,
  table: MovedTable,
  advance: (rows: number) => void,
): Promise<TableChecksum> {
  const hash = createHash('sha256');
  let rows = 0;
  for await (const page of pagesOf(read, table)) {
    hash.update(page.lines);
    rows += page.rows.length;
    advance(page.rows.length);
  }
  return { rows, digest: hash.digest('hex') };
}
