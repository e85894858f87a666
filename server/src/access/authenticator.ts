import type { Clock } from '../base/clock.ts';
import { type CredentialHash, hashCredential } from '../base/secret.ts';
import { CommitVersionedCache } from '../db/commit-versioned-cache.ts';
import type { Database } from '../db/database.ts';
import { readBearer, unauthorized } from './bearer.ts';
import type { CredentialRecord, Principal } from './principal.ts';

/** Asks the store for a credential of one kind. */
type FindCredential = (hash: CredentialHash) => Promise<CredentialRecord | null>;

interface AuthenticatorParts {
  readonly db: Pick<Database, 'dataVersion' | 'refreshVersion'>;
  readonly clock: Clock;
  readonly displayPrefixes: () => readonly string[];
  /** One for each kind of credential, the most used first. */
  readonly find: readonly FindCredential[];
  /** Called for each accepted personal access token. */
  readonly onTokenUse: (tokenId: string, nowMs: number) => void;
}

/** Proves who sent an Authorization header; throws the 401 that says why not. */
export type Authenticate = (header: string | undefined) => Promise<Principal>;

/** Returns the principal of a credential that is valid now; throws the 401 with the reason why it is not. */
export function validate(record: CredentialRecord, nowMs: number): Principal {
  switch (record.invalidReason) {
    case 'ownerGone':
      throw unauthorized.invalid();
    case 'revoked':
      throw unauthorized.revoked();
    case 'signedOut':
      throw unauthorized.sessionExpired();
    case null:
      break;
  }
  if (record.expiresAtMs !== null && nowMs >= record.expiresAtMs) {
    throw record.principal.kind === 'session' ? unauthorized.sessionExpired() : unauthorized.expired();
  }
  return record.principal;
}

/**
 * Verification of bearer credentials: the store decides, by the hash of the whole value joined with its owner and
 * organization; nothing is accepted on a signature. No write, no slow hash and no remote call happens here.
 * Rules: AUTH-25 to AUTH-27.
 */
export function authenticator({ db, clock, displayPrefixes, find, onTokenUse }: AuthenticatorParts): Authenticate {
  const cache = new CommitVersionedCache<CredentialHash, CredentialRecord>(() => db.dataVersion());

  async function findRecord(hash: CredentialHash): Promise<CredentialRecord> {
    const versionAtStart = cache.currentVersion();
    for (const findCredential of find) {
      const record = await findCredential(hash);
      if (!record) continue;
      if (record.invalidReason === null) cache.put(hash, record, versionAtStart);
      return record;
    }
    throw unauthorized.invalid();
  }

  return async (header) => {
    const hash = hashCredential(readBearer(header, displayPrefixes()));
    const isFresh = db.refreshVersion();
    if (isFresh) await isFresh;
    const record = cache.get(hash) ?? (await findRecord(hash));
    const nowMs = clock.now();
    const principal = validate(record, nowMs);
    if (principal.kind === 'token') onTokenUse(principal.tokenId, nowMs);
    return principal;
  };
}
