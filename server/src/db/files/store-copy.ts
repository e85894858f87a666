import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { StartupError } from '../../base/errors.ts';
import { startupReason, storeFile } from './data-dir.ts';

/** Called now and then with the progress of long work. */
export type Progress = (done: number, total: number) => void;

const waitMsMax = 5_000;
const pagesAtOnce = 1_000;

/** Copies the snapshot that `source` sees into a new file, page by page, while others write. */
async function copyPages(source: Sqlite.Database, to: string, progress: Progress): Promise<void> {
  const { totalPages: copied } = await source.backup(to, {
    progress: ({ totalPages, remainingPages }) => {
      progress(totalPages - remainingPages, totalPages);
      return pagesAtOnce;
    },
  });
  // That is how it ends where it could not even begin.
  if (!copied) throw new StartupError('The store could not be copied: another process has locked it');
}

/**
 * Copies a snapshot of the store into a new file while a server runs and writes. Throws StartupError where the store
 * cannot be read.
 */
export async function copyStore(dataDir: string, to: string, progress: Progress): Promise<void> {
  const file = join(dataDir, storeFile);
  const source = openCopied(file);
  try {
    // Kept open until the end: otherwise each commit of another connection would restart the copy, which would never
    // end.
    source.exec('BEGIN');
    source.prepare('SELECT count(*) FROM sqlite_master').get();
    await copyPages(source, to, progress);
    source.exec('COMMIT');
  } catch (error) {
    throw startupReason(error, file);
  } finally {
    source.close();
  }
}

function openCopied(file: string): Sqlite.Database {
  try {
    const source = new Sqlite(file, { timeout: waitMsMax, fileMustExist: true });
    source.pragma('query_only = ON');
    return source;
  } catch (error) {
    throw startupReason(error, file);
  }
}

/** A store that no other process can open. */
export interface HeldStore {
  /** Copies it into a new file. Throws StartupError where it is damaged. */
  copy(to: string, progress: Progress): Promise<void>;
  release(): void;
}

/**
 * Locks the store for this process alone until `release`, against servers and commands, and merges it into its one
 * file. Throws StartupError while it is in use, and where it is damaged.
 */
export function holdStore(dataDir: string): HeldStore {
  const file = join(dataDir, storeFile);
  let connection: Sqlite.Database | undefined;
  try {
    const held = new Sqlite(file, { timeout: waitMsMax, fileMustExist: true });
    connection = held;
    // Moves the log into the store and deletes it, which requires that no other connection has the store open.
    held.pragma('journal_mode = DELETE');
    held.pragma('locking_mode = EXCLUSIVE');
    // Once taken it is kept in this mode. A transaction that stays open could not be copied from.
    held.exec('BEGIN EXCLUSIVE; COMMIT');
    return {
      copy: (to, progress) =>
        copyPages(held, to, progress).catch((error: unknown) => {
          throw startupReason(error, file);
        }),
      release: () => held.close(),
    };
  } catch (error) {
    connection?.close();
    if (error instanceof Sqlite.SqliteError && error.code.startsWith('SQLITE_BUSY')) {
      throw new StoreInUseError(`Another command is using the store ${file}: wait for its end`);
    }
    throw startupReason(error, file);
  }
}

/** Another process has the store open. */
export class StoreInUseError extends StartupError {}

/** Leaves of a store nothing but its one file. */
export function gatherStore(file: string): void {
  const store = new Sqlite(file);
  try {
    store.pragma('journal_mode = DELETE');
  } finally {
    store.close();
  }
}
