import Sqlite from 'better-sqlite3';
import pg from 'pg';
import Cursor from 'pg-cursor';
import { rowsOf, secondConnection, tableNames } from './second-connection.ts';
import type { TestApp } from './test-app.ts';
import { isOnPostgres } from './test-store.ts';

/** Whose statement it is: the same object for the same connection. */
export interface WatchedConnection {
  readonly inTransaction: boolean;
}

type Before = (sql: string, connection: WatchedConnection) => void;
type Run = (this: Sqlite.Statement, ...args: unknown[]) => unknown;

const methods = ['run', 'all', 'get', 'iterate'] as const;

function statementPrototype(): Record<(typeof methods)[number], Run> {
  const connection = new Sqlite(':memory:');
  const statement: unknown = Object.getPrototypeOf(connection.prepare('SELECT 1'));
  connection.close();
  return statement as Record<(typeof methods)[number], Run>;
}

/** The same for the embedded store alone, with connections that are asked about SQLite itself. */
export function watchSqlite(before: (sql: string, connection: Sqlite.Database) => void): () => void {
  const prototype = statementPrototype();
  const originals = methods.map((name) => [name, prototype[name]] as const);
  for (const [name, original] of originals) {
    prototype[name] = function (this: Sqlite.Statement, ...args: unknown[]) {
      before(this.source, this.database);
      return original.apply(this, args);
    };
  }
  return () => {
    for (const [name, original] of originals) prototype[name] = original;
  };
}

/** Statements of the store itself: locks, data version, whether the server accepts writes. */
const ofTheStore =
  /^(update writer set mark|select mark from writer|show transaction_read_only)|from "(jobs|compatible_schemas)"/;

/** In SQLite's words. */
function asSqlite(text: string): string {
  return text.replace(/^start transaction.*/, 'begin immediate').replace(/\$\d+/g, '?');
}

const inTransaction = new WeakSet<object>();
const connections = new WeakMap<object, WatchedConnection>();

function connectionOf(client: object): WatchedConnection {
  const known = connections.get(client);
  const connection = known ?? {
    get inTransaction() {
      return inTransaction.has(client);
    },
  };
  connections.set(client, connection);
  return connection;
}

interface Asked {
  readonly text: string;
  readonly values?: readonly unknown[] | null;
}

/** Returns the statement that the driver got, in either of its forms. */
function askedIn([first, values]: readonly unknown[]): Asked {
  if (typeof first !== 'string') return first as Asked;
  return { text: first, values: (values as readonly unknown[] | undefined) ?? null };
}

/** Returns whether a node runs it periodically: for its store, or to check for reloads. */
function isBehindRequests({ text, values }: Asked): boolean {
  return ofTheStore.test(text) || values?.[0] === 'reload';
}

function watchPostgres(before: Before): () => void {
  const prototype = pg.Client.prototype as unknown as { query: (this: object, ...args: unknown[]) => unknown };
  const original = prototype.query;
  prototype.query = function (this: object, ...args: unknown[]) {
    const asked = askedIn(args);
    const { text } = asked;
    try {
      if (!isBehindRequests(asked)) before(asSqlite(text), connectionOf(this));
    } catch (error) {
      const failure = error instanceof Error ? error : new Error(String(error));
      return asked instanceof Cursor ? failingCursor(failure) : Promise.reject(failure);
    }
    if (text.startsWith('start transaction')) inTransaction.add(this);
    if (text === 'commit' || text === 'rollback') inTransaction.delete(this);
    return original.apply(this, args);
  };
  return () => {
    prototype.query = original;
  };
}

function failingCursor(error: Error) {
  return { read: () => Promise.reject(error), close: () => Promise.resolve() };
}

/**
 * Calls `before` ahead of every prepared statement that this process runs, on whatever connection, in SQLite's words.
 * What it throws is that statement's failure. Answers how to stop.
 */
export function watchStatements(before: Before): () => void {
  return isOnPostgres ? watchPostgres(before) : watchSqlite(before);
}

/** After some failures of the disk SQLite itself rolls back; PostgreSQL waits until it is told. */
export function rollBackByItself(connection: WatchedConnection): void {
  if (connection instanceof Sqlite && connection.inTransaction) connection.exec('ROLLBACK');
}

const diskErrors = {
  full: ['SQLITE_FULL', '53100'],
  broken: ['SQLITE_IOERR', '58030'],
  'read-only': ['SQLITE_READONLY', '25006'],
} as const;

/** Returns the store's error when its disk cannot be written. */
export function diskError(kind: keyof typeof diskErrors): Error {
  const [ofSqlite, ofPostgres] = diskErrors[kind];
  if (!isOnPostgres) return new Sqlite.SqliteError('injected', ofSqlite);
  return Object.assign(new pg.DatabaseError('injected', 0, 'error'), { code: ofPostgres });
}

/**
 * Does something ahead of a statement, as another process may: of those that match, the one with this number, from 1 on.
 * Answers how to stop, which tells whether it came to that.
 */
export function actAhead(pattern: RegExp, number: number, act: () => void): () => boolean {
  let [met, isActing] = [0, false];
  const stop = watchStatements((sql) => {
    if (isActing || !pattern.test(sql)) return;
    met += 1;
    if (met !== number) return;
    isActing = true;
    act();
    isActing = false;
  });
  return () => {
    stop();
    return met >= number;
  };
}

/** Everything in the store of a service but the record of migrations: the rows of each table, by its name. */
export function tablesOf(app: Pick<TestApp, 'dataDir'>): Readonly<Record<string, readonly unknown[]>> {
  const store = secondConnection(app);
  try {
    const stored = tableNames(store).filter(
      (name) => !['schema_migrations', 'compatible_schemas'].includes(name) && !name.startsWith('sqlite_'),
    );
    return Object.fromEntries(stored.map((name) => [name, rowsOf(store, name)]));
  } finally {
    store.close();
  }
}
