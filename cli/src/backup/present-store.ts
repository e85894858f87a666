import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock } from '../../../server/src/base/clock.ts';
import { StartupError } from '../../../server/src/base/errors.ts';
import type { Config } from '../../../server/src/config/config.ts';
import { holdsStore, storeFile } from '../../../server/src/db/files/data-dir.ts';
import { type HeldStore, holdStore, type Progress, StoreInUseError } from '../../../server/src/db/files/store-copy.ts';
import { migrate } from '../../../server/src/db/schema/migrate.ts';
import { openSqlite } from '../../../server/src/db/sqlite/sqlite.ts';

/** The store that a back-up takes the place of. */
export interface PresentStore {
  readonly isThere: boolean;
  /** `null`: there is none, or it cannot be read. */
  readonly held: HeldStore | null;
  /** Why it cannot be read; `null`: it can. */
  readonly problem: string | null;
}

/** Locks the present store against writes. Throws StartupError while it is in use. */
export function takePresentStore({ dataDir }: Config): PresentStore {
  if (!holdsStore(dataDir)) return { isThere: false, held: null, problem: `DATA_DIR ${dataDir} holds no store` };
  try {
    return { isThere: true, held: holdStore(dataDir), problem: null };
  } catch (error) {
    if (error instanceof StoreInUseError || !(error instanceof StartupError)) throw error;
    return { isThere: true, held: null, problem: error.message };
  }
}

/**
 * Copies the present store for reading, and brings the copy to this release's schema.
 * @returns the copy, or why there is none
 */
export async function copyPresent(
  { held, problem }: PresentStore,
  staging: string,
  progress: Progress,
): Promise<{ readonly file: string } | { readonly problem: string }> {
  if (!held) return { problem: problem ?? '' };
  const directory = join(staging, 'present');
  const file = join(directory, storeFile);
  mkdirSync(directory, { mode: 0o700 });
  try {
    await held.copy(file, progress);
    const db = openSqlite(directory);
    try {
      await migrate(db, systemClock);
    } finally {
      await db.close();
    }
    return { file };
  } catch (error) {
    if (error instanceof StartupError) return { problem: error.message };
    throw error;
  }
}
