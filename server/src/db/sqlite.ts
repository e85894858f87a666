import { chmodSync, existsSync, mkdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { Kysely, SqliteDialect } from 'kysely';
import { StartupError } from '../errors.ts';
import type { Arguments, Database, HotQuery, Tx } from './database.ts';
import { KeptUntilCommit } from './kept.ts';
import { compileStatement } from './statement.ts';
import type { Tables } from './tables.ts';

const busyTimeoutMs = 5_000;
/** Above this size the check of every page would hold up the start; below it takes some milliseconds. */
const checkedBytesMax = 64 * 1_048_576;
const preparedMax = 500;

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
    // After a full disk and the like SQLite has rolled back by itself: rolling back again would fail and hide the cause.
    if (sqlText === 'rollback' && !this.#connection.inTransaction) return this.#connection.prepare('select 1');
    const held = this.#statements.get(sqlText);
    if (held) return held;
    const statement = this.#connection.prepare(sqlText === 'begin' ? 'begin immediate' : sqlText);
    if (this.#statements.size >= preparedMax) this.#statements.clear();
    this.#statements.set(sqlText, statement);
    return statement;
  }

  close(): void {
    this.#connection.close();
  }
}

function openConnection(file: string, options: Sqlite.Options): Sqlite.Database {
  const connection = new Sqlite(file, { timeout: busyTimeoutMs, ...options });
  connection.pragma('foreign_keys = ON');
  connection.pragma('cache_size = -32768');
  // SQLite's own knows only ASCII letters; names have others.
  connection.function('lower', { deterministic: true }, (text: unknown) =>
    typeof text === 'string' ? text.toLowerCase() : text,
  );
  return connection;
}

function openWriter(file: string): Sqlite.Database {
  const writer = openConnection(file, {});
  try {
    writer.pragma('journal_mode = WAL');
    writer.pragma('synchronous = FULL');
    if (statSync(file).size <= checkedBytesMax && writer.pragma('quick_check(1)', { simple: true }) !== 'ok') {
      throw new StartupError(`The store ${file} is damaged: restore it from a backup`);
    }
    return writer;
  } catch (error) {
    writer.close();
    throw error;
  }
}

function startupReason(error: unknown, file: string): StartupError {
  if (error instanceof StartupError) return error;
  const code = error instanceof Sqlite.SqliteError ? error.code : '';
  if (code === 'SQLITE_NOTADB' || code.startsWith('SQLITE_CORRUPT')) {
    return new StartupError(`The store ${file} is damaged: restore it from a backup`);
  }
  return new StartupError(`The store ${file} cannot be opened: ${error instanceof Error ? error.message : code}`);
}

/** Makes the data directory, for its owner alone, if it isn't there. Throws StartupError where that is impossible. */
export function prepareDataDir(dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new StartupError(`DATA_DIR ${dataDir} cannot be made or written: ${reason}`);
  }
}

/**
 * Holds the data directory for this server until `release` or the end of the process, however it ends. A second server
 * on the same directory gets a StartupError. Operator commands don't take it: they may work beside the server.
 */
export function holdDataDir(dataDir: string): { release(): void } {
  const file = join(dataDir, 'server.lock');
  try {
    // An exclusive transaction is a lock of the operating system, which a killed process gives up by itself.
    const lock = new Sqlite(file, { timeout: 0 });
    lock.pragma('journal_mode = DELETE');
    lock.exec('BEGIN EXCLUSIVE');
    return { release: () => lock.close() };
  } catch (error) {
    if (error instanceof Sqlite.SqliteError && error.code === 'SQLITE_BUSY') {
      throw new StartupError(
        `Another server is using DATA_DIR ${dataDir}: stop it, or give this one its own directory`,
      );
    }
    throw startupReason(error, file);
  }
}

/**
 * Opens the embedded store: one connection that writes, in write-ahead mode and synced at each commit, and one that
 * only reads, so that a request never sees what another has not committed yet.
 */
export function openSqlite(dataDir: string): Database {
  const file = join(dataDir, 'latchkey.db');
  try {
    const isNew = !existsSync(file);
    const writer = openWriter(file);
    if (isNew) chmodSync(file, 0o600);
    // Before the first migration there is no file to open read-only; the pragma protects just as well.
    const reader = openConnection(file, {});
    reader.pragma('query_only = ON');
    return sqliteDatabase(writer, reader);
  } catch (error) {
    throw startupReason(error, file);
  }
}

/**
 * SQLite's `data_version` of the connection that only reads: it differs as soon as any other connection, of this
 * process or another, has committed. Asking costs a lock and its release, so it is asked once in a turn of the event
 * loop: a commit of this process counts at once, one of another process from the next turn on.
 */
class TurnMark {
  readonly #statement: Sqlite.Statement;
  #mark: number | null = null;
  readonly #forget = () => this.forget();

  constructor(reader: Sqlite.Database) {
    this.#statement = reader.prepare('PRAGMA data_version').pluck();
  }

  read(): number {
    if (this.#mark === null) {
      this.#mark = Number(this.#statement.get());
      setImmediate(this.#forget);
    }
    return this.#mark;
  }

  forget(): void {
    this.#mark = null;
  }
}

function sqliteDatabase(writer: Sqlite.Database, reader: Sqlite.Database): Database {
  const kysely = (connection: Sqlite.Database) =>
    new Kysely<Tables>({ dialect: new SqliteDialect({ database: new PreparingConnection(connection) }) });
  const write = kysely(writer);
  const read = kysely(reader);
  const mark = new TurnMark(reader);
  const prepared = new Map<unknown, (args: never) => unknown>();

  function prepare<A extends Arguments, T>(query: HotQuery<A, T>): (args: A) => T | undefined {
    const { sql, bind } = compileStatement(query, read);
    const statement = reader.prepare(sql);
    const readFirst = (values: unknown[]) => {
      const row = statement.get(values);
      return row === undefined ? undefined : query.toValue(row);
    };
    const kept = new KeptUntilCommit<string, T>(() => mark.read());
    const keepFirst = (values: unknown[]) => {
      const key = values.join('\0');
      const known = kept.get(key);
      if (known !== undefined) return known;
      // Reading is synchronous here: nothing can be committed between the stamp and the row.
      const value = readFirst(values);
      if (value !== undefined) kept.put(key, value, kept.stamp());
      return value;
    };
    const first = query.keep ? keepFirst : readFirst;
    const runner = (args: A) => first(bind(args));
    prepared.set(query, runner);
    return runner;
  }

  return {
    read,
    transaction: async <T>(work: (tx: Tx) => Promise<T>) => {
      try {
        return await write.transaction().execute(work);
      } finally {
        mark.forget();
      }
    },
    first: async <A extends Arguments, T>(query: HotQuery<A, T>, args: A) => {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what `prepare` put there for this very query
      const runner = prepared.get(query) as ((args: A) => T | undefined) | undefined;
      return (runner ?? prepare(query))(args);
    },
    commitMark: () => mark.read(),
    check: async () => {
      await read.selectFrom('schema_migrations').select('version').limit(1).execute();
    },
    close: async () => {
      await read.destroy();
      await write.destroy();
    },
  };
}
