import { existsSync, statSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import type { Reader } from '../database.ts';
import { startupReason, storeFile } from './data-dir.ts';

/** Number of problems that are listed; there may be more. */
const listedMax = 5;
const waitMs = 5_000;

/** Findings about the file of the embedded store. */
export interface StoreFileCheck {
  readonly bytes: number;
  /** Every page was checked. */
  readonly isWhole: boolean;
  /** Damage, in SQLite's messages; at most 5. */
  readonly damage: readonly string[];
  /** Tables with rows that refer to rows which are not there. */
  readonly strays: readonly string[];
}

/**
 * Checks the file of the embedded store for damage, also while a server runs. Writes nothing. Throws StartupError for a
 * file that cannot be read at all.
 * @param wholeBytesMax up to this size every page is checked, which takes about a second for 100 MB
 */
export function checkStoreFile(dataDir: string, wholeBytesMax: number): StoreFileCheck {
  const file = join(dataDir, storeFile);
  try {
    const bytes = statSync(file).size;
    const isWhole = bytes <= wholeBytesMax;
    const store = new Sqlite(file, { fileMustExist: true, timeout: waitMs });
    try {
      store.pragma('query_only = ON');
      const ask = (sqlText: string) => (isWhole ? store.prepare(sqlText).pluck().all().map(String) : []);
      const lines = ask(`PRAGMA quick_check(${listedMax})`);
      return {
        bytes,
        isWhole,
        damage: lines.filter((text) => text !== 'ok'),
        strays: ask('SELECT DISTINCT "table" FROM pragma_foreign_key_check'),
      };
    } finally {
      store.close();
    }
  } catch (error) {
    throw startupReason(error, file);
  }
}

/** Returns whether a server has locked a data directory. Takes the lock itself for an instant only. */
export function isHeld(dataDir: string): boolean {
  const file = join(dataDir, 'server.lock');
  if (!existsSync(file)) return false;
  const lock = new Sqlite(file, { readonly: true, fileMustExist: true, timeout: 0 });
  try {
    lock.pragma('user_version');
    return false;
  } catch (error) {
    if (error instanceof Sqlite.SqliteError && error.code === 'SQLITE_BUSY') return true;
    throw error;
  } finally {
    lock.close();
  }
}

/** Returns the time of the latest change in the store, in milliseconds since 1970; `null`: there was none. */
export async function selectLatest(read: Reader): Promise<number | null> {
  const { latest } = await read
    .selectFrom('audit_log')
    .select((eb) => eb.fn.max('occurred_at').as('latest'))
    .executeTakeFirstOrThrow();
  const { applied } = await read
    .selectFrom('schema_migrations')
    .select((eb) => eb.fn.max('applied_at').as('applied'))
    .executeTakeFirstOrThrow();
  const known = [latest, applied].filter((ms) => ms !== null);
  return known.length === 0 ? null : Math.max(...known);
}
