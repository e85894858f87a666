import { errors, type JWTPayload, jwtVerify } from 'jose';
import { type Clock, day, second } from '../base/clock.ts';
import { type CredentialHash, hashCredential, type Secret } from '../base/secret.ts';
import { readBearer, unauthorized } from './bearer.ts';
import type { ServicePrincipal } from './principal.ts';

/** A scope of services. Rule: SERVICE-13. */
export type ServiceScope = 'USER_LOOKUP' | 'FETCH_CONFIG' | 'EVENTS_READ' | 'TOKEN_INTROSPECT';

/** The one scope that services keep after the organization is deleted, to read up to `orgDeleted`. Rule: ORG-27. */
const remainingScope: ServiceScope = 'EVENTS_READ';

/** Of some scopes, those that count once the organization is deleted. Rule: ORG-27. */
export function remainingScopes(scopes: Iterable<string>): string[] {
  return [...scopes].filter((name) => name === remainingScope);
}

/** The store's record of a token that it issued to a service. */
export interface ServiceTokenRecord {
  readonly clientId: string;
  readonly scopes: ReadonlySet<string>;
  readonly isRevoked: boolean;
  /** Milliseconds since 1970. Valid until just before this instant. */
  readonly expiresAtMs: number;
}

/** Second spellings that services use. */
const spellings: ReadonlyMap<string, ServiceScope> = new Map([
  ['user:lookup', 'USER_LOOKUP'],
  ['fetch:config', 'FETCH_CONFIG'],
]);
/** Without padding, and without spare bits at the end of the signature: of each token there is one spelling only. */
const exactForm = /^[\w-]+\.[\w-]+\.[\w-]{42}[AEIMQUYcgkosw048]$/;

/** Proves which service sent an Authorization header; throws the 401 that says why not. */
export type AuthenticateService = (header: string | undefined) => Promise<ServicePrincipal>;

/** The scopes that a token names: none where it has no list of names, and nothing else in it. */
function scopesOf({ scopes }: JWTPayload): ReadonlySet<string> {
  if (!Array.isArray(scopes) || !scopes.every((name) => typeof name === 'string')) return new Set();
  return new Set(scopes.map((name) => spellings.get(name) ?? name));
}

/** Principal of a token while the organization exists. */
type Proved = Omit<ServicePrincipal, 'isOrganizationDeleted'>;

function provedBy({ clientId, scopes, isRevoked, expiresAtMs }: ServiceTokenRecord, nowMs: number): Proved {
  if (isRevoked) throw unauthorized.revoked();
  if (nowMs >= expiresAtMs) throw unauthorized.expired();
  return { kind: 'service', clientId, scopes, expiresAtMs };
}

/**
 * Returns the principal of a token once the organization is deleted; throws where none of its scopes remains. Rule:
 * ORG-27.
 */
function afterDeletion(proved: Proved): ServicePrincipal {
  const scopes = new Set(remainingScopes(proved.scopes));
  if (scopes.size === 0) throw unauthorized.invalid();
  return { ...proved, scopes, isOrganizationDeleted: true };
}

/**
 * Verification of scoped tokens: those that were issued to registered clients, which the store knows by their hashes, and
 * those that trusted services sign themselves with the secret that they share with us: HS256, `scopes` as a list, `exp`
 * at most 24 hours ahead. Without a secret none of the latter is valid. Rules: ORG-27, SERVICE-1, SERVICE-12 to SERVICE-14.
 */
export function scopedTokenReader({
  secret,
  clock,
  find,
  isOrganizationDeleted,
}: {
  /** The present secret: the same object as long as nothing changes. */
  readonly secret: () => Secret | null;
  readonly clock: Clock;
  /** Asks the store for a token that was issued to a service. */
  readonly find: (hash: CredentialHash) => Promise<ServiceTokenRecord | null>;
  /** Asks the store, each time. */
  readonly isOrganizationDeleted: () => Promise<boolean>;
}): AuthenticateService {
  async function claimsOf(token: string, nowMs: number): Promise<JWTPayload> {
    const shared = secret();
    const key = shared && new TextEncoder().encode(shared.expose());
    if (!key || !exactForm.test(token)) throw unauthorized.invalid();
    try {
      const options = { algorithms: ['HS256'], currentDate: new Date(nowMs), requiredClaims: ['exp'] };
      const { payload, protectedHeader } = await jwtVerify(token, key, options);
      if ('zip' in protectedHeader || 'b64' in protectedHeader) throw unauthorized.invalid();
      return payload;
    } catch (error) {
      throw error instanceof errors.JWTExpired ? unauthorized.expired() : unauthorized.invalid();
    }
  }

  async function prove(token: string, nowMs: number): Promise<Proved> {
    const record = await find(hashCredential(token));
    if (record) return provedBy(record, nowMs);
    const claims = await claimsOf(token, nowMs);
    const expiresAtMs = (claims.exp ?? Number.POSITIVE_INFINITY) * second;
    if (expiresAtMs > nowMs + day) throw unauthorized.invalid();
    return { kind: 'service', clientId: null, scopes: scopesOf(claims), expiresAtMs };
  }

  return async (header) => {
    const proved = await prove(readBearer(header, []), clock.now());
    if (await isOrganizationDeleted()) return afterDeletion(proved);
    return { ...proved, isOrganizationDeleted: false };
  };
}
