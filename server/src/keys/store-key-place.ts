import type { Clock } from '../base/clock.ts';
import { Secret } from '../base/secret.ts';
import type { Database } from '../db/database.ts';
import type { Encryption } from './encryption.ts';
import { type KeyPlace, keyFile, sharedKeys, signingKeyPurpose } from './key-place.ts';
import { insertSharedKeys, selectSharedKeys } from './key-store.ts';

interface Parts {
  readonly db: Database;
  readonly dataDir: string;
  readonly encryption: Encryption;
  readonly clock: Clock;
}

/**
 * Returns the storage of a store's signing keys: nodes that share a store sign with the same keys. Rules: AUTH-34,
 * AUTH-36.
 */
export function keyPlaceOf({ db, dataDir, encryption, clock }: Parts): KeyPlace {
  if (!db.isShared) return keyFile(dataDir);
  return sharedKeys({
    select: () => selectSharedKeys(db),
    insert: (content) => insertSharedKeys(db, content, clock.now()),
    encrypt: (content) => encryption.encrypt(signingKeyPurpose, new Secret(content)),
    decrypt: async (content) => (await encryption.decrypt(signingKeyPurpose, content))?.expose() ?? null,
  });
}
