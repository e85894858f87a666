import { existsSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { appendAudit } from '../audit-log/audit-log.ts';
import type { Clock } from '../base/clock.ts';
import { StartupError } from '../base/errors.ts';
import type { NewId } from '../base/ids.ts';
import type { Origin } from '../base/origin.ts';
import { syncDirectory } from '../base/private-file.ts';
import type { Secret } from '../base/secret.ts';
import type { Database, Reader } from '../db/database.ts';
import type { Metrics } from '../metrics/metrics.ts';
import { selectEncrypted } from './encrypted-store.ts';
import {
  encryptionKeyFile,
  encryptionWith,
  makeEncryptionKey,
  readEncryptionKey,
  writeEncryptionKey,
} from './encryption.ts';

interface Parts {
  readonly db: Database;
  readonly clock: Clock;
  readonly newId: NewId;
  readonly metrics: Pick<Metrics, 'countActivity'>;
}

/** Counts of a change of the encryption key. */
export interface Reencryption {
  readonly encrypted: number;
  /** Neither key reads it: it is left as it is. */
  readonly unreadable: number;
}

const keyFile = (dataDir: string) => join(dataDir, encryptionKeyFile);
/** File of a new key until the store is encrypted with it. */
const nextKeyFile = (dataDir: string) => `${keyFile(dataDir)}.next`;

/**
 * Encrypts everything that is stored encrypted, and signs what is signed, with another key, in one transaction. Doing it again changes nothing. No
 * server may be running. Rule: AUDIT-15.
 */
export async function encryptAnew(
  parts: Parts,
  { from, to }: { readonly from: Secret; readonly to: Secret },
  origin: Origin,
): Promise<Reencryption> {
  const [before, after] = [encryptionWith(from), encryptionWith(to)];
  return parts.db.transaction(async (tx) => {
    let encrypted = 0;
    let unreadable = 0;
    for (const value of await selectEncrypted(tx)) {
      if (await value.isOf(before)) {
        await value.renew(tx, before, after);
        encrypted += 1;
      } else if (!(await value.isOf(after))) unreadable += 1;
    }
    const act = { action: 'keys.encryption-rotated', orgId: null, actor: null, subjectId: null } as const;
    await appendAudit(tx, parts, { ...act, origin, details: { encrypted, unreadable } });
    return { encrypted, unreadable };
  });
}

/** Returns whether a key is the one that the store is encrypted with; `nothing`: nothing is encrypted yet. */
export async function encryptionUse(read: Reader, key: Secret): Promise<'this' | 'another' | 'nothing'> {
  const encryption = encryptionWith(key);
  const values = await selectEncrypted(read);
  for (const value of values) {
    if (await value.isOf(encryption)) return 'this';
  }
  return values.length === 0 ? 'nothing' : 'another';
}

/** Returns whether a change of the key in the data directory is running, or was cut short. */
export function isKeyChanging(dataDir: string): boolean {
  return existsSync(nextKeyFile(dataDir));
}

/**
 * Ends a change of the key in the data directory that was cut short: the key that the store is encrypted with stays, and
 * the other one goes. Call it before the encryption is opened, while no other server runs. Rule: AUDIT-15.
 */
export async function settleEncryptionKey(read: Reader, dataDir: string): Promise<void> {
  const next = nextKeyFile(dataDir);
  if (!existsSync(next)) return;
  if ((await encryptionUse(read, readEncryptionKey(next))) === 'this') renameSync(next, keyFile(dataDir));
  else rmSync(next);
  syncDirectory(next);
}

/**
 * Changes the key in the data directory, while no server runs. If it is interrupted, the next start finds the key that
 * the store is encrypted with. Throws StartupError for a damaged key. Rule: AUDIT-15.
 */
export async function rotateEncryptionKey(parts: Parts, dataDir: string, origin: Origin): Promise<Reencryption> {
  if (!existsSync(keyFile(dataDir))) {
    throw new StartupError(`DATA_DIR ${dataDir} holds no ${encryptionKeyFile}: start the server once`);
  }
  await settleEncryptionKey(parts.db.read, dataDir);
  const from = readEncryptionKey(keyFile(dataDir));
  const to = makeEncryptionKey();
  writeEncryptionKey(nextKeyFile(dataDir), to);
  const done = await encryptAnew(parts, { from, to }, origin);
  renameSync(nextKeyFile(dataDir), keyFile(dataDir));
  syncDirectory(keyFile(dataDir));
  return done;
}
