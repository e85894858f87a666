import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { appendAudit } from '../audit-log/audit-log.ts';
import type { Clock } from '../base/clock.ts';
import { StartupError } from '../base/errors.ts';
import type { NewId } from '../base/ids.ts';
import type { Origin } from '../base/origin.ts';
import { readPrivately, writePrivately } from '../base/private-file.ts';
import { Secret } from '../base/secret.ts';
import type { Database, Tx } from '../db/database.ts';
import type { Metrics } from '../metrics/metrics.ts';
import type { Encryption } from './encryption.ts';
import { signingKeyFile, signingKeyPurpose } from './key-place.ts';
import { selectOldestLiveToken, selectSharedKeys, updateSharedKeys } from './key-store.ts';
import { makeKey, neededKeys, parseStoredKeys, publishedAheadMs, storedContent } from './stored-keys.ts';

interface Parts {
  readonly db: Database;
  readonly clock: Clock;
  readonly newId: NewId;
  readonly metrics: Pick<Metrics, 'countActivity'>;
}

/** Storage of the keys that a rotation changes. */
interface KeyStorage {
  readonly name: string;
  /** `null` where there are none. */
  read(tx: Tx): Promise<string | null>;
  write(tx: Tx, content: string): Promise<void>;
}

/** The keys in a data directory. */
export function keysInFile(dataDir: string): KeyStorage {
  const file = join(dataDir, signingKeyFile);
  return {
    name: `The key file ${file}`,
    read: async () => (existsSync(file) ? readPrivately(file) : null),
    write: async (_tx, content) => writePrivately(file, content),
  };
}

/** The keys in a store that several nodes share. */
export function keysInStore(encryption: Encryption): KeyStorage {
  return {
    name: 'The signing keys in the store',
    read: async (tx) => {
      const content = await selectSharedKeys({ read: tx });
      if (content === null) return null;
      return (await encryption.decrypt(signingKeyPurpose, content))?.expose() ?? '';
    },
    write: async (tx, content) =>
      updateSharedKeys(tx, await encryption.encrypt(signingKeyPurpose, new Secret(content))),
  };
}

/** Outcome of a rotation. Times in milliseconds since 1970. */
export interface Rotation {
  /** The new key's name. */
  readonly kid: string;
  readonly signsFromMs: number;
  /** Earlier keys that go on being published. */
  readonly kept: number;
  /** Earlier keys that no token needs any more. */
  readonly dropped: number;
}

/**
 * Adds a new signing key, which every node publishes before it signs with it, and drops those that no token needs any
 * more. If it is interrupted, all keys are the earlier ones or the new ones. Throws StartupError for damaged or missing
 * keys. Rule: AUTH-59.
 * @returns the outcome; `underway`: the key of the last rotation does not even sign yet
 */
export async function rotateSigningKeys(
  parts: Parts,
  home: KeyStorage,
  origin: Origin,
): Promise<Rotation | 'underway'> {
  const made = await makeKey();
  return parts.db.transaction(async (tx) => {
    const content = await home.read(tx);
    const keys = content === null ? null : parseStoredKeys(content);
    if (!keys) throw new StartupError(`${home.name} cannot be read: start the server once, or restore a backup`);
    const nowMs = parts.clock.now();
    if ((keys[0]?.signsFrom ?? 0) > nowMs) return 'underway';
    const signsFromMs = nowMs + publishedAheadMs;
    const kept = neededKeys(keys, { nowMs, oldestTokenMs: await selectOldestLiveToken(tx, nowMs) });
    const rotation = { kid: made.kid, signsFromMs, kept: kept.length, dropped: keys.length - kept.length };
    const { kid, dropped } = rotation;
    await appendAudit(tx, parts, {
      action: 'keys.signing-rotated',
      orgId: null,
      actor: null,
      subjectId: null,
      origin,
      details: { kid, kept: kept.length, dropped },
    });
    // Last, because a file knows no transaction: a rotation that is undone must not have happened.
    await home.write(tx, storedContent([{ ...made, signsFrom: signsFromMs }, ...kept]));
    return rotation;
  });
}
