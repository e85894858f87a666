import { existsSync, mkdirSync, renameSync } from 'node:fs';
import { join } from 'node:path';
import { systemClock, toTimestamp } from '../../../server/src/base/clock.ts';
import { storeFile } from '../../../server/src/db/files/data-dir.ts';
import { gatherStore } from '../../../server/src/db/files/store-copy.ts';
import { keepAlso, sync } from './durable-files.ts';

function asideDirectory(dataDir: string): string {
  const time = toTimestamp(systemClock.now()).replace(/[-:]|\.\d+/g, '');
  for (let number = 1; ; number += 1) {
    const directory = join(dataDir, number === 1 ? `replaced-${time}` : `replaced-${time}-${number}`);
    if (!existsSync(directory)) return directory;
  }
}

/**
 * Returns the files that only an unreadable store still has. They would corrupt another store, so they are moved first.
 */
function strayFiles(dataDir: string): readonly string[] {
  return ['-wal', '-shm', '-journal'].map((end) => storeFile + end).filter((name) => existsSync(join(dataDir, name)));
}

/** Keeps the present store aside, where it is to be found again; it is still in its place afterwards. */
function keepAside(dataDir: string): string {
  const aside = asideDirectory(dataDir);
  mkdirSync(aside, { mode: 0o700 });
  if (existsSync(join(dataDir, storeFile))) keepAlso(join(dataDir, storeFile), join(aside, storeFile));
  for (const name of strayFiles(dataDir)) renameSync(join(dataDir, name), join(aside, name));
  sync(aside);
  sync(dataDir);
  return aside;
}

/**
 * Puts a finished store in the place of the present one, in one step: before it everything is as it was, after it the new
 * store is there, whole, also after a power cut. Rule: CLI-26.
 * @param file of the finished store, in the same file system
 * @returns where the store that was there is kept; `null`: there was none
 */
export function replaceStore(file: string, dataDir: string, isThere: boolean): string | null {
  gatherStore(file);
  sync(file);
  const aside = isThere || strayFiles(dataDir).length > 0 ? keepAside(dataDir) : null;
  renameSync(file, join(dataDir, storeFile));
  sync(dataDir);
  return aside;
}
