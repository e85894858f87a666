import { errors, type JWTPayload, jwtVerify } from 'jose';
import { type Clock, day, second } from '../clock.ts';
import type { Secret } from '../secret.ts';
import { readBearer, unauthorized } from './bearer.ts';
import type { ServicePrincipal } from './principal.ts';

/** What a service may be allowed to do. Rule: SERVICE-13. */
export type ServiceScope = 'USER_LOOKUP' | 'FETCH_CONFIG' | 'EVENTS_READ' | 'TOKEN_INTROSPECT';

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

/**
 * Verification of scoped tokens, which trusted services sign themselves with the secret that they share with us: HS256,
 * `scopes` as a list, `exp` at most 24 hours ahead. Without a secret none is good. Rules: SERVICE-1, SERVICE-13, SERVICE-14.
 */
export function scopedTokenReader({
  secret,
  clock,
}: {
  readonly secret: Secret | null;
  readonly clock: Clock;
}): AuthenticateService {
  const key = secret && new TextEncoder().encode(secret.expose());

  async function claimsOf(token: string, nowMs: number): Promise<JWTPayload> {
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

  return async (header) => {
    const nowMs = clock.now();
    const claims = await claimsOf(readBearer(header, []), nowMs);
    if ((claims.exp ?? Number.POSITIVE_INFINITY) * second > nowMs + day) throw unauthorized.invalid();
    return { kind: 'service', scopes: scopesOf(claims) };
  };
}
