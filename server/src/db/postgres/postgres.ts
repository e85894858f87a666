import { createHash } from 'node:crypto';
import { Kysely, PostgresDialect, type PostgresPoolClient, sql } from 'kysely';
import type { Logger } from 'pino';
import { second } from '../../base/clock.ts';
import type { Secret } from '../../base/secret.ts';
import { CommitVersionedCache } from '../commit-versioned-cache.ts';
import type { Arguments, Database, PreparedQuery } from '../database.ts';
import { requireSharedStore, requireWholeStore } from '../move/move-target.ts';
import { postgresAddresses } from '../postgres-address.ts';
import type { Tables } from '../schema/tables.ts';
import { compileStatement } from '../statement.ts';
import { connectionProblem } from './connection-problem.ts';
import { codeOf } from './postgres-connection.ts';
import { PostgresDataVersion } from './postgres-data-version.ts';
import { PostgresDialectPlugin } from './postgres-dialect-plugin.ts';
import { listsMax, PostgresLists } from './postgres-lists.ts';
import { PostgresPool } from './postgres-pool.ts';
import { writing } from './postgres-transactions.ts';

const connectionsMax = 20;
/** A list may be read slowly, and PostgreSQL counts from its first row to its last: longer than any list takes. */
const listMsMax = 65 * second;
/** Milliseconds between checks of the store while a caller waits for it. */
const pulseMs = second;

/** Code for a prepared statement whose columns have changed. */
const columnsChanged = '0A000';
/** Codes that occur when two servers start at the same time and both find that a table is missing. */
const madeByAnother = new Set(['23505', '42P07', '42710']);

/**
 * Creates the row that every writer locks, so that transactions run one after another as in the embedded store. Each
 * leaves another number in it.
 */
async function makeWriter(db: Kysely<Tables>): Promise<void> {
  await sql`create table if not exists writer (id integer primary key, mark bigint not null)`.execute(db);
  await sql`insert into writer (id, mark) values (1, 0) on conflict do nothing`.execute(db);
}

async function prepare(db: Kysely<Tables>): Promise<void> {
  try {
    await makeWriter(db);
  } catch (error) {
    if (!madeByAnother.has(codeOf(error))) throw error;
    await makeWriter(db);
  }
}

/**
 * Purpose of opening a database: `serve` creates the store where there is none, `use` rejects that, and `move` fills an
 * empty one.
 */
type Opening = 'serve' | 'use' | 'move';

async function prepareFor(opening: Opening, read: Kysely<Tables>): Promise<void> {
  if (opening === 'move') return void (await sql`select 1`.execute(read));
  if (opening === 'use') await requireSharedStore(read);
  else await prepare(read);
  await requireWholeStore(read);
}

/** Adapter from `pool` to the query builder. */
function dialect(pool: PostgresPool): PostgresDialect {
  const connect = async () => {
    const connection = await pool.connect();
    const query = (text: string, values: readonly unknown[]) => connection.query(text, values);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the query builder knows no cursors and asks for none
    return { query, release: () => connection.release() } as unknown as PostgresPoolClient;
  };
  return new PostgresDialect({ pool: { connect, end: () => pool.end() } });
}

/**
 * Opens a store in PostgreSQL, or in a database that speaks its protocol. Transactions lock one row first and so run
 * one after another; reads see committed state. Throws StartupError where it cannot be reached, or a move into it has
 * not ended.
 * @param opening also says by which name PostgreSQL knows the connections: that of a server, or of a command
 * @param setting what names the database in errors: an option of a command, or the variable
 */
export async function openPostgres(
  url: Secret,
  log: Logger | null = null,
  { opening = 'serve', setting = 'DATABASE_URL' }: { readonly opening?: Opening; readonly setting?: string } = {},
): Promise<Database> {
  const addresses = postgresAddresses(url.expose()) ?? [];
  const common = { addresses, log, user: opening === 'serve' ? 'server' : 'command' } as const;
  const pool = new PostgresPool({ ...common, connectionsMax });
  const marks = new PostgresPool({ ...common, connectionsMax: 1 });
  const lists = new PostgresPool({ ...common, connectionsMax: listsMax, cursorMs: listMsMax });
  const read = new Kysely<Tables>({ dialect: dialect(pool), plugins: [new PostgresDialectPlugin()] });
  try {
    await prepareFor(opening, read);
  } catch (error) {
    await read.destroy();
    throw connectionProblem(error, { addresses, setting });
  }
  return postgresDatabase(read, { pool, marks, lists });
}

/**
 * Returns a function that runs a query prepared once on each connection, under a name that identifies it: under another
 * one once a newer release has added columns to its tables, which the earlier statement does not return. Rule: NODE-9.
 */
function queryRunner(pool: PostgresPool, text: string) {
  const hash = createHash('sha1').update(text).digest('hex');
  let name = hash;
  let changes = 0;
  return async (values: unknown[]) => {
    const used = name;
    try {
      return await pool.query({ name, text, values });
    } catch (error) {
      if (codeOf(error) !== columnsChanged) throw error;
      // A concurrent caller may have seen it first.
      if (name === used) {
        changes += 1;
        name = `${hash}-${changes}`;
      }
      return pool.query({ name, text, values });
    }
  };
}

/** Runs queries that are prepared once on each connection. */
function preparedQueries(read: Kysely<Tables>, pool: PostgresPool, mark: PostgresDataVersion) {
  const runners = new Map<unknown, (args: never) => Promise<unknown>>();

  function prepareHot<A extends Arguments, T>(query: PreparedQuery<A, T>): (args: A) => Promise<T | undefined> {
    const { sql: text, bind } = compileStatement(query, read);
    const ask = queryRunner(pool, text);
    const readFirst = async (values: unknown[]) => {
      const { rows } = await ask(values);
      return rows.length === 0 ? undefined : query.toValue(rows[0]);
    };
    const cache = new CommitVersionedCache<string, T>(() => mark.read());
    const keepFirst = async (values: unknown[]) => {
      const key = values.join('\0');
      await mark.refreshVersion();
      const known = cache.get(key);
      if (known !== undefined) return known;
      const versionAtStart = cache.currentVersion();
      const value = await readFirst(values);
      if (value !== undefined) cache.put(key, value, versionAtStart);
      return value;
    };
    const first = query.isCached ? keepFirst : readFirst;
    const runner = (args: A) => first(bind(args));
    runners.set(query, runner);
    return runner;
  }

  return async <A extends Arguments, T>(query: PreparedQuery<A, T>, args: A): Promise<T | undefined> => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what `prepareHot` put there for this very query
    const runner = runners.get(query) as ((args: A) => Promise<T | undefined>) | undefined;
    return (runner ?? prepareHot(query))(args);
  };
}

interface Pools {
  readonly pool: PostgresPool;
  readonly marks: PostgresPool;
  readonly lists: PostgresPool;
}

function postgresDatabase(read: Kysely<Tables>, { pool, marks, lists: listPool }: Pools): Database {
  const lists = new PostgresLists(listPool);
  const { transaction, sideTransaction: note, health } = writing(read);
  const mark = new PostgresDataVersion(marks, (askedMs) => {
    pool.giveUp(askedMs);
    listPool.giveUp(askedMs);
  });
  // Callers that wait for a lost server are rejected even if no other query is sent.
  const pulse = setInterval(() => {
    if (pool.isInUse || listPool.isInUse) mark.refreshVersion().catch(() => {});
  }, pulseMs).unref();
  return {
    isShared: true,
    read,
    transaction,
    sideTransaction: note,
    first: preparedQueries(read, pool, mark),
    batches: (query, reader) => lists.read(query, reader),
    refreshVersion: () => mark.refreshVersion(),
    dataVersion: () => mark.read(),
    check: async () => {
      await read.selectFrom('schema_migrations').select('version').limit(1).execute();
      await health.check();
    },
    close: async () => {
      clearInterval(pulse);
      await marks.end();
      await listPool.end();
      await read.destroy();
    },
  };
}
