import { existsSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { readPrivately, writePrivately } from '../../../server/src/base/private-file.ts';
import type { Config } from '../../../server/src/config/config.ts';
import type { BackupKeys } from '../../../server/src/db/files/backup-file.ts';
import { CommandError } from '../failures.ts';

const encryptionKey = 'encryption-key';
/** Files of the data directory that a store is not whole without. */
const names = ['signing-keys.json', encryptionKey];

/** The key files of a data directory, as far as there are any. Throws StartupError for one that others can read. */
export function readKeys({ dataDir }: Config): BackupKeys {
  const present = names.filter((name) => existsSync(join(dataDir, name)));
  return new Map(present.map((name) => [name, readPrivately(join(dataDir, name))]));
}

function isHere(file: string): boolean {
  return statSync(file, { throwIfNoEntry: false }) !== undefined;
}

/** Plan for the keys of a back-up. */
export interface KeyPlan {
  /** Names of those that are not there and will be written. */
  readonly written: readonly string[];
  /** Names of those that are there and stay, although the back-up has others. */
  readonly kept: readonly string[];
}

/**
 * Plans which keys of a back-up are put into the data directory: the missing ones. An existing key is never replaced,
 * so that the present store is usable at any time. Rule: CLI-26.
 */
export function planKeys({ dataDir }: Config, keys: BackupKeys): KeyPlan {
  const known = [...keys].filter(([name]) => names.includes(name));
  const here = known.filter(([name]) => isHere(join(dataDir, name)));
  return {
    written: known.filter(([name]) => !isHere(join(dataDir, name))).map(([name]) => name),
    kept: here.filter(([name, content]) => readFileSync(join(dataDir, name), 'utf8') !== content).map(([name]) => name),
  };
}

/** Rejects a back-up whose stored settings the existing key cannot decrypt, where no other key replaces it. */
export function requireSameEncryption({ dataDir, encryptionKey: configured }: Config, { kept }: KeyPlan): void {
  if (configured !== null || !kept.includes(encryptionKey)) return;
  throw new CommandError(
    'refused',
    `${join(dataDir, encryptionKey)} is not the key of the back-up, which stored settings are encrypted with: move it away, and signing-keys.json with it`,
  );
}

/** Puts the planned keys into the data directory. */
export function writeKeys({ dataDir }: Config, keys: BackupKeys, { written }: KeyPlan): void {
  for (const name of written) writePrivately(join(dataDir, name), keys.get(name) ?? '');
}
