import Sqlite from 'better-sqlite3';

/** What the engine reports when it cannot work, as against a statement that is wrong: full, read-only, busy, damaged. */
const failing = /^SQLITE_(FULL|IOERR|BUSY|LOCKED|READONLY|CANTOPEN|CORRUPT|NOTADB|NOMEM|PROTOCOL)/;

/**
 * What PostgreSQL reports alike (appendix A of its manual): connection lost, out of resources, stopped by an operator,
 * a lock that was waited for too long, others in the way, a transaction that stood still for too long, and what may not be
 * written just now.
 */
const failingStates = /^(08|53|57|58|XX|40|55P03|25P03|25006)/;
const failingSystem = /^(ECONN|EPIPE|ETIMEDOUT|EHOST|ENET|ENOTFOUND|EAI_)/;
/** What the driver says without a code. */
const failingWords =
  /Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|Client was closed|Query read timeout|Cannot use a pool after/;

function isPostgresFailure(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : '';
  return (
    failingStates.test(code) || ('syscall' in error && failingSystem.test(code)) || failingWords.test(error.message)
  );
}

/** Too many wait for the store already. */
export class StoreBusyError extends Error {}

/** The store cannot be reached, or doesn't answer; whether it did what it was asked last, nobody knows. */
export class StoreLostError extends Error {
  /** That of the cause; empty where it has none. */
  readonly code: string;

  constructor(message: string, options: ErrorOptions = {}) {
    super(message, options);
    const { cause } = options;
    this.code = cause instanceof Error && 'code' in cause ? String(cause.code) : '';
  }
}

/** Nothing may be written to this store any more: another one took its place. */
export class StoreMovedError extends Error {}

/** Whether an error says that the store cannot be used right now, so that the same request may succeed later. */
export function isStoreFailure(error: unknown): boolean {
  if (error instanceof StoreBusyError || error instanceof StoreLostError || error instanceof StoreMovedError)
    return true;
  return (error instanceof Sqlite.SqliteError && failing.test(error.code)) || isPostgresFailure(error);
}
