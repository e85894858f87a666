import { accessSync, closeSync, constants, existsSync, mkdirSync, openSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { StartupError } from '../../base/errors.ts';

/** The name of the store in its data directory. */
export const storeFile = 'latchkey.db';

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error));

/** Why SQLite could not open or write `file`, in the words of the operating system, which has more of them. */
function writeProblem(file: string, error: Error): string {
  try {
    closeSync(openSync(file, 'a', 0o600));
    accessSync(dirname(file), constants.W_OK);
    return error.message;
  } catch (reason) {
    return messageOf(reason);
  }
}

/** Why a store cannot be opened, in one line for the operator. Rule: FIT-110. */
export function startupReason(error: unknown, file: string): StartupError {
  if (error instanceof StartupError) return error;
  const code = error instanceof Sqlite.SqliteError ? error.code : '';
  if (code === 'SQLITE_NOTADB' || code.startsWith('SQLITE_CORRUPT')) {
    return new StartupError(`The store ${file} is damaged: restore it from a backup`);
  }
  if (error instanceof Error && /^SQLITE_(CANTOPEN|READONLY)/.test(code)) {
    return new StartupError(`DATA_DIR ${dirname(file)} cannot be written: ${writeProblem(file, error)}`);
  }
  if (error instanceof Error && 'code' in error && error.code === 'ERR_DLOPEN_FAILED') {
    return new StartupError(
      `The SQLite module does not load in this Node.js ${process.versions.node}: it was compiled for another one. npm start installs it again, as does npm ci`,
      { cause: error },
    );
  }
  return new StartupError(`The store ${file} cannot be opened: ${messageOf(error)}`);
}

/** One level at a time: Node's own `recursive` never ends where the parent is there and the child cannot be. */
function makeDirectories(path: string): void {
  if (existsSync(path)) return;
  const parent = dirname(path);
  if (parent !== path) makeDirectories(parent);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another server may have created it in the meantime.
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  }
}

/** Makes the data directory, for its owner alone, if it isn't there. Throws StartupError where that is impossible. */
export function prepareDataDir(dataDir: string): void {
  let isDirectory: boolean;
  try {
    makeDirectories(dataDir);
    isDirectory = statSync(dataDir).isDirectory();
  } catch (error) {
    throw new StartupError(`DATA_DIR ${dataDir} cannot be created: ${messageOf(error)}`);
  }
  if (!isDirectory) throw new StartupError(`DATA_DIR ${dataDir} is a file: give a directory`);
}

/** Rejects a data directory without a store, for callers that must not create one. Throws StartupError. */
export function requireStore(dataDir: string): void {
  if (holdsStore(dataDir)) return;
  throw new StartupError(`DATA_DIR ${dataDir} holds no store (${storeFile}): give the directory that the server uses`);
}

/**
 * Returns whether a directory, which may not exist, contains a store. Throws StartupError where that cannot be read.
 */
export function holdsStore(dataDir: string): boolean {
  try {
    return (statSync(join(dataDir, storeFile), { throwIfNoEntry: false })?.size ?? 0) > 0;
  } catch (error) {
    throw new StartupError(`DATA_DIR ${dataDir} cannot be read: ${messageOf(error)}`);
  }
}

/**
 * Locks the data directory for this server until `release` or the end of the process, however it ends. A second server
 * on the same directory gets a StartupError. Operator commands don't take the lock: they may run while the server runs.
 */
export function holdDataDir(dataDir: string): { release(): void } {
  const file = join(dataDir, 'server.lock');
  try {
    // An exclusive transaction is a lock of the operating system, which is released when the process is killed.
    const lock = new Sqlite(file, { timeout: 0 });
    lock.pragma('journal_mode = MEMORY');
    lock.exec('BEGIN EXCLUSIVE');
    // Of a file that may only be read, SQLite would hold no more than a lock that others share. This is never committed.
    lock.pragma('user_version = 1');
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
