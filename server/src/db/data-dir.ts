import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { StartupError } from '../errors.ts';

/** Why a store cannot be opened, in one line for the operator. */
export function startupReason(error: unknown, file: string): StartupError {
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
