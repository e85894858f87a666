import Sqlite from 'better-sqlite3';

/** What the engine reports when it cannot work, as against a statement that is wrong: full, read-only, busy, damaged. */
const failing = /^SQLITE_(FULL|IOERR|BUSY|LOCKED|READONLY|CANTOPEN|CORRUPT|NOTADB|NOMEM|PROTOCOL)/;

/** Whether an error says that the store cannot be used right now, so that the same request may succeed later. */
export function isStoreFailure(error: unknown): boolean {
  return error instanceof Sqlite.SqliteError && failing.test(error.code);
}
