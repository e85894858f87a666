import { randomUUID } from 'node:crypto';
import { existsSync, renameSync, rmSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { systemClock, toTimestamp } from '../../../server/src/base/clock.ts';
import type { Config } from '../../../server/src/config/config.ts';
import { type BackupFacts, finishBackup } from '../../../server/src/db/files/backup-file.ts';
import { verifyChecksum } from '../../../server/src/db/files/checksum-file.ts';
import { requireStore } from '../../../server/src/db/files/data-dir.ts';
import { copyStore, type Progress } from '../../../server/src/db/files/store-copy.ts';
import { CommandError } from '../failures.ts';
import { readKeys } from './backup-keys.ts';
import { sync } from './durable-files.ts';

interface BackupInput {
  readonly to: string;
  readonly isForced: boolean;
  readonly withKeys: boolean;
  readonly progress: Progress;
}

/** Facts of a finished back-up. */
export interface MadeBackup extends BackupFacts {
  readonly file: string;
  readonly bytes: number;
  /** Names of the key files in it. */
  readonly keys: readonly string[];
}

function requireFree(file: string, isForced: boolean): void {
  const there = statSync(file, { throwIfNoEntry: false });
  if (there?.isDirectory()) throw new CommandError('usage', `--to ${file} is a directory: give a file`);
  if (there && !isForced) throw new CommandError('refused', `${file} is there already: --force replaces it`);
  if (!existsSync(dirname(file))) throw new CommandError('failed', `The directory ${dirname(file)} is not there`);
}

/**
 * Backs up a snapshot of the store, also while a server runs. The file is complete, verified and synced to disk, or not
 * there; a file that it replaces stays until then. Throws StartupError and CommandError. Rules: CLI-24, CLI-25.
 */
export async function makeBackup(
  config: Config,
  { to, isForced, withKeys, progress }: BackupInput,
): Promise<MadeBackup> {
  const file = resolve(to);
  requireStore(config.dataDir);
  requireFree(file, isForced);
  const madeAt = toTimestamp(systemClock.now());
  const unfinished = join(dirname(file), `.${basename(file)}.${randomUUID()}.partial`);
  try {
    await copyStore(config.dataDir, unfinished, progress);
    const keys = withKeys ? readKeys(config) : new Map<string, string>();
    const facts = finishBackup(unfinished, keys, madeAt);
    verifyChecksum(unfinished);
    requireFree(file, isForced);
    renameSync(unfinished, file);
    sync(dirname(file));
    return { file, ...facts, bytes: statSync(file).size, keys: [...keys.keys()] };
  } finally {
    for (const end of ['', '-journal', '-wal', '-shm']) rmSync(unfinished + end, { force: true });
  }
}
