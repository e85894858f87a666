import { chmodSync, existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { type Compilable, Kysely, SqliteDialect, sql } from 'kysely';
import { StartupError } from '../../base/errors.ts';
import { CommitVersionedCache } from '../commit-versioned-cache.ts';
import type { Arguments, Database, PreparedQuery, Tx } from '../database.ts';
import { startupReason, storeFile } from '../files/data-dir.ts';
import { requireNotMoved, untilMoved } from '../move/moved.ts';
import type { Tables } from '../schema/tables.ts';
import { compileStatement } from '../statement.ts';
import { WriteHealth } from '../write-health.ts';
import { DataVersion } from './data-version.ts';
import { StreamReader } from './stream-reader.ts';

/** Milliseconds that a reading connection may wait, which blocks the whole process; readers hardly ever wait. */
const readTimeoutMs = 5_000;
/** Milliseconds that a transaction waits while another process writes, without blocking other work. */
const writeWaitMs = 5_000;
const writeRetryMs = 10;
/** Above this size the check of every page would hold up the start; below it takes some milliseconds. */
const checkedBytesMax = 64 * 1_048_576;
const preparedMax = 500;
const logBytesMax = 64 * 1_048_576;
/** Longer statements have as many parameters as a caller sent: each takes megabytes, and hardly any comes twice. */
const preparedLengthMax = 3_000;

/**
 * Kysely prepares a statement each time it runs one; this keeps them. It also makes transactions take the write lock
 * when they begin: one that reads first and writes later could otherwise fail half way, whenever another process wrote
 * in between.
 */
class PreparingConnection {
  readonly #connection: Sqlite.Database;
  readonly #statements = new Map<string, Sqlite.Statement>();

  constructor(connection: Sqlite.Database) {
    this.#connection = connection;
  }

  prepare(sqlText: string): Sqlite.Statement {
    // After errors such as a full disk SQLite has already rolled back: another rollback would fail and hide the cause.
    if (sqlText === 'rollback' && !this.#connection.inTransaction) return this.#connection.prepare('select 1');
    const held = this.#statements.get(sqlText);
    if (held) return held;
    const statement = this.#connection.prepare(sqlText === 'begin' ? 'begin immediate' : sqlText);
    if (sqlText.length > preparedLengthMax) return statement;
    if (this.#statements.size >= preparedMax) this.#statements.clear();
    this.#statements.set(sqlText, statement);
    return statement;
  }

  close(): void {
    this.#connection.close();
  }
}

function openConnection(file: string, options: Sqlite.Options): Sqlite.Database {
  const connection = new Sqlite(file, { timeout: readTimeoutMs, ...options });
  try {
    return prepareConnection(connection);
  } catch (error) {
    connection.close();
    throw error;
  }
}

function prepareConnection(connection: Sqlite.Database): Sqlite.Database {
  connection.pragma('foreign_keys = ON');
  connection.pragma('cache_size = -32768');
  return connection;
}

function openWriter(file: string): Sqlite.Database {
  const writer = openConnection(file, {});
  try {
    writer.pragma('journal_mode = WAL');
    writer.pragma('synchronous = FULL');
    // Deleted data, such as the hash of a password, does not stay in free pages.
    writer.pragma('secure_delete = ON');
    // A log that grew while a long list was read gives the space back.
    writer.pragma(`journal_size_limit = ${logBytesMax}`);
    if (statSync(file).size <= checkedBytesMax && writer.pragma('quick_check(1)', { simple: true }) !== 'ok') {
      throw new StartupError(`The store ${file} is damaged: restore it from a backup`);
    }
    // From here on transactions wait in this process, see `whenFree`.
    writer.pragma('busy_timeout = 0');
    return writer;
  } catch (error) {
    writer.close();
    throw error;
  }
}

/** Before the first migration there is no file to open read-only; the pragma protects just as well. */
function openReader(file: string): Sqlite.Database {
  const reader = openConnection(file, {});
  reader.pragma('query_only = ON');
  return reader;
}

/** A list reads its rows once, and many lists may be open: a small cache is enough. */
function openListReader(file: string): Sqlite.Database {
  const reader = openReader(file);
  reader.pragma('cache_size = -2048');
  return reader;
}

/**
 * Rejects an empty file, which SQLite would take for a new store, open to anyone who creates an organization. Rule:
 * STORE-10.
 */
function requireContent(file: string): void {
  if (statSync(file).size > 0) return;
  throw new StartupError(`The store ${file} is empty: restore it from a backup, or remove the file to start over`);
}

/**
 * Opens the embedded store: one connection that writes, in write-ahead mode and synced at each commit, and one that
 * only reads, so that a request never sees what another has not committed yet. Throws StartupError for one that cannot be
 * opened, or was moved away.
 */
export function openSqlite(dataDir: string): Database {
  const file = join(dataDir, storeFile);
  requireNotMoved(dataDir);
  try {
    const isNew = !existsSync(file);
    if (!isNew) requireContent(file);
    const writer = openWriter(file);
    if (isNew) chmodSync(file, 0o600);
    const db = sqliteDatabase(writer, openReader(file), new StreamReader(() => openListReader(file)));
    return untilMoved(db, dataDir);
  } catch (error) {
    throw startupReason(error, file);
  }
}

/**
 * Runs a transaction as soon as no other process is writing. One that could not even begin is tried again; one that
 * has begun never is.
 */
async function whenFree<T>(run: (begun: () => void) => Promise<T>): Promise<T> {
  const untilMs = performance.now() + writeWaitMs;
  for (;;) {
    let hasBegun = false;
    try {
      return await run(() => {
        hasBegun = true;
      });
    } catch (error) {
      const isBusy = error instanceof Sqlite.SqliteError && error.code === 'SQLITE_BUSY';
      if (hasBegun || !isBusy || performance.now() >= untilMs) throw error;
      await setTimeout(writeRetryMs);
    }
  }
}

/** Writes an unused number without changing it: SQLite writes the page all the same, which it would not for a row. */
async function writeTheSame(tx: Tx): Promise<void> {
  await sql`pragma user_version = 0`.execute(tx);
}

/** Runs transactions, and notes whether the store writes. */
function transactions(write: Kysely<Tables>, mark: DataVersion) {
  const health = new WriteHealth(() => transaction(writeTheSame));

  async function transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    const run = (begun: () => void) =>
      write.transaction().execute((tx) => {
        begun();
        return work(tx);
      });
    try {
      return await health.watch(() => whenFree(run));
    } finally {
      mark.forget();
    }
  }
  return { transaction, health };
}

/** Runs queries that are prepared once. */
function preparedQueries(reader: Sqlite.Database, read: Kysely<Tables>, mark: DataVersion): Database['first'] {
  const prepared = new Map<unknown, (args: never) => unknown>();

  function prepare<A extends Arguments, T>(query: PreparedQuery<A, T>): (args: A) => T | undefined {
    const { sql, bind } = compileStatement(query, read);
    const statement = reader.prepare(sql);
    const readFirst = (values: unknown[]) => {
      const row = statement.get(values);
      return row === undefined ? undefined : query.toValue(row);
    };
    const cache = new CommitVersionedCache<string, T>(() => mark.read());
    const keepFirst = (values: unknown[]) => {
      const key = values.join('\0');
      const known = cache.get(key);
      if (known !== undefined) return known;
      // Reading is synchronous here: nothing can be committed between the stamp and the row.
      const value = readFirst(values);
      if (value !== undefined) cache.put(key, value, cache.currentVersion());
      return value;
    };
    const first = query.isCached ? keepFirst : readFirst;
    const runner = (args: A) => first(bind(args));
    prepared.set(query, runner);
    return runner;
  }

  return async <A extends Arguments, T>(query: PreparedQuery<A, T>, args: A) => {
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what `prepare` put there for this very query
    const runner = prepared.get(query) as ((args: A) => T | undefined) | undefined;
    return (runner ?? prepare(query))(args);
  };
}

function sqliteDatabase(writer: Sqlite.Database, reader: Sqlite.Database, lists: StreamReader): Database {
  const kysely = (connection: Sqlite.Database) =>
    new Kysely<Tables>({ dialect: new SqliteDialect({ database: new PreparingConnection(connection) }) });
  const write = kysely(writer);
  const read = kysely(reader);
  const mark = new DataVersion(reader);
  const { transaction, health } = transactions(write, mark);

  return {
    isShared: false,
    read,
    transaction,
    sideTransaction: transaction,
    first: preparedQueries(reader, read, mark),
    batches: <R>(query: Compilable<R>, reader: string) => lists.read(query, reader),
    refreshVersion: () => null,
    dataVersion: () => mark.read(),
    check: async () => {
      await read.selectFrom('schema_migrations').select('version').limit(1).execute();
      await health.check();
    },
    close: async () => {
      lists.close();
      await read.destroy();
      await write.destroy();
      // Kysely closes only connections that it has used.
      reader.close();
      writer.close();
    },
  };
}
