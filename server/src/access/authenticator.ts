import type { Clock } from '../clock.ts';
import type { Database } from '../db/database.ts';
import { type CredentialHash, hashCredential } from '../secret.ts';
import { readBearer, unauthorized } from './bearer.ts';
import type { HeldCredential, Principal } from './principal.ts';

const keptMax = 20_000;

/** Asks the store for a credential of one kind. */
type FindCredential = (hash: CredentialHash) => Promise<HeldCredential | null>;

interface AuthenticatorParts {
  readonly db: Pick<Database, 'commitMark'>;
  readonly clock: Clock;
  readonly displayPrefixes: () => readonly string[];
  /** One for each kind of credential, the most used first. */
  readonly find: readonly FindCredential[];
  /** Told of each accepted personal access token. */
  readonly onTokenUse: (tokenId: string) => void;
}

/** Proves who sent an Authorization header; throws the 401 that says why not. */
export type Authenticate = (header: string | undefined) => Promise<Principal>;

/**
 * What verification keeps in memory. It may hold something only for as long as nobody has committed anything, this
 * process or another, so that a revocation shows at the very next look. A look-up that began before such a commit is
 * not kept.
 */
class KeptCredentials {
  readonly #db: Pick<Database, 'commitMark'>;
  readonly #kept = new Map<CredentialHash, HeldCredential>();
  #mark: number | null = null;

  constructor(db: Pick<Database, 'commitMark'>) {
    this.#db = db;
  }

  get(hash: CredentialHash): HeldCredential | undefined {
    const mark = this.#db.commitMark();
    if (mark === null) return undefined;
    if (mark !== this.#mark) {
      this.#kept.clear();
      this.#mark = mark;
    }
    return this.#kept.get(hash);
  }

  /** To be called before a look-up; the answer goes to `put`. */
  stamp(): number | null {
    return this.#mark;
  }

  put(hash: CredentialHash, held: HeldCredential, stamp: number | null): void {
    if (stamp === null || stamp !== this.#mark) return;
    if (this.#kept.size >= keptMax) this.#kept.clear();
    this.#kept.set(hash, held);
  }
}

function judge(held: HeldCredential, nowMs: number): Principal {
  const isSession = held.principal.kind === 'session';
  switch (held.ended) {
    case 'ownerGone':
      throw unauthorized.invalid();
    case 'revoked':
      throw unauthorized.revoked();
    case 'signedOut':
      throw unauthorized.sessionExpired();
    case null:
      break;
  }
  if (held.expiresAtMs !== null && nowMs >= held.expiresAtMs) {
    throw isSession ? unauthorized.sessionExpired() : unauthorized.expired();
  }
  return held.principal;
}

/**
 * Verification of bearer credentials: the store decides, by the hash of the whole value joined with its owner and
 * organization; nothing is accepted on a signature. No write, no slow hash and no remote call happens here.
 * Rules: AUTH-5, PAT-20.
 */
export function authenticator({ db, clock, displayPrefixes, find, onTokenUse }: AuthenticatorParts): Authenticate {
  const kept = new KeptCredentials(db);

  async function lookUp(hash: CredentialHash): Promise<HeldCredential> {
    const stamp = kept.stamp();
    for (const findCredential of find) {
      const held = await findCredential(hash);
      if (!held) continue;
      if (held.ended === null) kept.put(hash, held, stamp);
      return held;
    }
    throw unauthorized.invalid();
  }

  return async (header) => {
    const hash = hashCredential(readBearer(header, displayPrefixes()));
    const principal = judge(kept.get(hash) ?? (await lookUp(hash)), clock.now());
    if (principal.kind === 'token') onTokenUse(principal.tokenId);
    return principal;
  };
}
