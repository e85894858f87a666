import Sqlite from 'better-sqlite3';

/** Codes of SQLite for a store that cannot work, as opposed to a wrong statement: full, read-only, busy, damaged. */
const failing = /^SQLITE_(FULL|IOERR|BUSY|LOCKED|READONLY|CANTOPEN|CORRUPT|NOTADB|NOMEM|PROTOCOL)/;

/**
 * The same for PostgreSQL (appendix A of its manual): connection lost, out of resources, stopped by an operator, lock
 * timeout, conflict with other sessions, idle-in-transaction timeout, and read-only transactions.
 */
const failingStates = /^(08|53|57|58|XX|40|55P03|25P03|25006)/;
const failingSystem = /^(ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|ENOTFOUND|EAI_)/;
/** Messages of the driver for errors without a code. */
const failingMessages =
  /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Client was closed|Query read timeout|Cannot use a pool after/;

function isPostgresFailure(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  return (
    failingStates.test(code) || ('syscall' in error && failingSystem.test(code)) || failingMessages.test(error.message)
  );
}

/** Too many wait for the store already. */
export class StoreBusyError extends Error {}

/** The store cannot be reached, or doesn't respond; the outcome of the last statement is unknown. */
export class StoreLostError extends Error {
  /** The code of the cause; empty where it has none. */
  readonly code: string;

  constructor(message: string, options: ErrorOptions = {}) {
    super(message, options);
    const { cause } = options;
    this.code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  }
}

/** Nothing may be written to this store any more: another one took its place. */
export class StoreMovedError extends Error {}

/**
 * Returns whether an error means that the store cannot be used right now, so that the same request may succeed later.
 */
export function isStoreFailure(error: unknown): boolean {
  if (error instanceof StoreBusyError || error instanceof StoreLostError || error instanceof StoreMovedError)
    return true;
  return (error instanceof Sqlite.SqliteError && failing.test(error.code)) || isPostgresFailure(error);
}
