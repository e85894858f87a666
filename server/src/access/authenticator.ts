import type { Clock } from '../clock.ts';
import type { Database } from '../db/database.ts';
import { KeptUntilCommit } from '../db/kept.ts';
import { type CredentialHash, hashCredential } from '../secret.ts';
import { readBearer, unauthorized } from './bearer.ts';
import type { HeldCredential, Principal } from './principal.ts';

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

/** Proves who sent an Authorization header. Its connection is given too, for clients that send the same one again. */
export interface Authenticator {
  /** The principal, where what is known of the credential is kept and it holds: at once. `null`: ask `prove`. */
  recall(header: string | undefined, connection: object): Principal | null;
  /** The principal. Throws the 401 that says why not. */
  prove(header: string | undefined, connection: object): Promise<Principal>;
}

interface ReadHeader {
  readonly header: string | undefined;
  readonly prefixes: readonly string[];
  readonly hash: CredentialHash;
}

/**
 * Reads the hash of the credential in a header. Over one connection the same header usually comes again, and hashing it
 * is the dearest part of a verification: the last one is remembered for as long as the connection lives.
 */
function credentialReader(displayPrefixes: () => readonly string[]) {
  const last = new WeakMap<object, ReadHeader>();
  return (header: string | undefined, connection: object): CredentialHash => {
    const prefixes = displayPrefixes();
    const known = last.get(connection);
    if (known?.header === header && known?.prefixes === prefixes) return known.hash;
    const hash = hashCredential(readBearer(header, prefixes));
    last.set(connection, { header, prefixes, hash });
    return hash;
  };
}

function hasExpired({ expiresAtMs }: HeldCredential, nowMs: number): boolean {
  return expiresAtMs !== null && nowMs >= expiresAtMs;
}

function judge(held: HeldCredential, nowMs: number): Principal {
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
  if (hasExpired(held, nowMs)) {
    throw held.principal.kind === 'session' ? unauthorized.sessionExpired() : unauthorized.expired();
  }
  return held.principal;
}

/**
 * Verification of bearer credentials: the store decides, by the hash of the whole value joined with its owner and
 * organization; nothing is accepted on a signature. No write, no slow hash and no remote call happens here.
 * Rules: AUTH-25 to AUTH-27.
 */
export function authenticator({ db, clock, displayPrefixes, find, onTokenUse }: AuthenticatorParts): Authenticator {
  const readCredential = credentialReader(displayPrefixes);
  const kept = new KeptUntilCommit<CredentialHash, HeldCredential>(() => db.commitMark());

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

  function use(principal: Principal): Principal {
    if (principal.kind === 'token') onTokenUse(principal.tokenId);
    return principal;
  }

  return {
    recall: (header, connection) => {
      if (header === undefined) return null;
      const held = kept.get(readCredential(header, connection));
      return held === undefined || hasExpired(held, clock.now()) ? null : use(held.principal);
    },
    prove: async (header, connection) => {
      const hash = readCredential(header, connection);
      const held = kept.get(hash) ?? (await lookUp(hash));
      return use(judge(held, clock.now()));
    },
  };
}
