import { type Kysely, sql } from 'kysely';
import { StartupError } from '../../base/errors.ts';
import type { Secret } from '../../base/secret.ts';
import type { Database, Reader } from '../database.ts';
import { postgresAddresses } from '../postgres-address.ts';
import type { Tables } from '../schema/tables.ts';
import type { MovedTable } from './moved-tables.ts';

/**
 * The rows of the table `writer`: 1 is what transactions take turns by, 2 is there while a move into this database has not
 * ended. Its mark says which move it is.
 */
const markId = 2;

const tablesHere = sql<{ name: string }>`
  select table_name as name from information_schema.tables where table_schema = current_schema() order by table_name
`;

/** Returns whether the database has the table that every store begins with. */
async function hasWriter(read: Reader): Promise<boolean> {
  const { rows } = await tablesHere.execute(read);
  return rows.some(({ name }) => name === 'writer');
}

/** Rejects a database without a store, for callers that must not create one. Throws StartupError. Rule: CLI-7. */
export async function requireSharedStore(read: Kysely<Tables>): Promise<void> {
  if (await hasWriter(read)) return;
  throw new StartupError('DATABASE_URL names a database that holds no store: give the one that the server uses', {
    variable: 'DATABASE_URL',
  });
}

/** Rejects a database with an unfinished move. Throws StartupError. Rule: STORE-17. */
export async function requireWholeStore(read: Kysely<Tables>): Promise<void> {
  if ((await selectMove(read)) === null) return;
  throw new StartupError(
    'The store of DATABASE_URL is not whole, a move into it has not ended: run the same latchkey move again, or give an empty database',
    { variable: 'DATABASE_URL' },
  );
}

async function selectMove(read: Reader): Promise<number | null> {
  const { rows } = await sql<{ mark: number }>`select mark from writer where id = ${markId}`.execute(read);
  return rows[0]?.mark ?? null;
}

/** Returns the number of the unfinished move into this database; `null`: none. */
export async function unfinishedMove({ read }: Database): Promise<number | null> {
  return (await hasWriter(read)) ? selectMove(read) : null;
}

/**
 * Claims an empty database for a move, or one that an unfinished move left behind, which is emptied. From now on no
 * server starts on it. Throws StartupError for a database that contains anything else.
 * @param move a number that no other move has
 * @param restart whether an unfinished move may be started over
 */
export async function claimTarget(
  target: Database,
  { move, restart }: { readonly move: number; readonly restart: boolean },
): Promise<void> {
  const unfinished = await unfinishedMove(target);
  if (unfinished !== null && !restart) {
    throw new StartupError(
      'A move into this database was interrupted, or is running: --force deletes what it left and starts over',
    );
  }
  if (unfinished === null) await claimEmpty(target, move);
  else await claimAnew(target, { unfinished, move });
}

/** In one transaction: the second one, this or a starting server, finds what the first one created. */
async function claimEmpty({ read }: Database, move: number): Promise<void> {
  const { rows } = await tablesHere.execute(read);
  const names = rows.map(({ name }) => name);
  if (names.length > 0) {
    const shown = names.length > 3 ? `${names.slice(0, 3).join(', ')}, …` : names.join(', ');
    throw new StartupError(`The database is not empty (${shown}): give an empty one`);
  }
  try {
    await read.transaction().execute(async (tx) => {
      await sql`create table writer (id integer primary key, mark bigint not null)`.execute(tx);
      await sql`insert into writer (id, mark) values (1, 0), (${markId}, ${move})`.execute(tx);
    });
  } catch (error) {
    throw new StartupError('Another process has just begun to use the database: use an empty one', { cause: error });
  }
}

/** A process that began the earlier move and still runs finds that it no longer owns the database. */
async function claimAnew(
  { read }: Database,
  { unfinished, move }: { readonly unfinished: number; readonly move: number },
): Promise<void> {
  const { numAffectedRows } =
    await sql`update writer set mark = ${move} where id = ${markId} and mark = ${unfinished}`.execute(read);
  if (Number(numAffectedRows) !== 1) throw new StartupError('Another move into this database has just begun');
  const { rows } = await tablesHere.execute(read);
  for (const { name } of rows) {
    if (name !== 'writer') await read.schema.dropTable(name).ifExists().cascade().execute();
  }
}

/** Deletes the rows that migrations inserted into the tables that are about to be filled. */
export async function emptyTables(target: Database, tables: readonly MovedTable[]): Promise<void> {
  await target.transaction(async (tx) => {
    for (const { name } of tables.toReversed()) await sql`delete from ${sql.table(name)}`.execute(tx);
  });
}

/** Makes sure that the database is still this move's. Throws StartupError. */
export async function requireOwnMove(target: Database, move: number): Promise<void> {
  if ((await selectMove(target.read)) === move) return;
  throw new StartupError('Another move into this database has begun meanwhile: this one was given up');
}

/** Lets PostgreSQL know how its tables are filled, so that the first requests are as fast as later ones. */
export async function analyzeTables({ read }: Database, tables: readonly MovedTable[]): Promise<void> {
  for (const { name } of tables) await sql`analyze ${sql.table(name)}`.execute(read);
}

/** Ends a move: from now on servers start on the database. Throws StartupError where it isn't this move's any more. */
export async function finishMove({ read }: Database, move: number): Promise<void> {
  const { numAffectedRows } = await sql`delete from writer where id = ${markId} and mark = ${move}`.execute(read);
  if (Number(numAffectedRows) !== 1) throw new StartupError('This move does not hold the database any more');
}

/** The last number that was taken of each counter. */
export async function selectCounters(read: Reader): Promise<Readonly<Record<string, number>>> {
  const rows = await read.selectFrom('counters').select(['name', 'value']).orderBy('name').execute();
  return Object.fromEntries(rows.map(({ name, value }) => [name, value]));
}

/** An address as it may be shown: hosts and database, without user, password and parameters. */
export function addressText(url: Secret): string {
  const addresses = (postgresAddresses(url.expose()) ?? []).map((address) => new URL(address));
  return `${addresses.map(({ host }) => host).join(',')}${addresses[0]?.pathname ?? ''}`;
}
