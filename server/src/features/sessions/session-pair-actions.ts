import { day, hour, second } from '../../base/clock.ts';
import type { Origin } from '../../base/origin.ts';
import { Secret } from '../../base/secret.ts';
import type { User } from '../../db/members/users.ts';
import { encryptionWith } from '../../keys/encryption.ts';
import { networkOf } from '../../limits/limits.ts';
import type { Services } from '../../services.ts';

/** Lifetime of a session token. Rule: AUTH-12. */
const accessTokenMs = 24 * hour;
/** Lifetime of a refresh token that isn't exchanged before. Rule: AUTH-15. */
const refreshTokenMs = 30 * day;

/** An access token of a session, signed but not yet stored. */
export interface SignedAccessToken {
  readonly accessToken: Secret;
  /** Milliseconds since 1970. */
  readonly accessEndsMs: number;
}

/** A pair of tokens of one session, signed but not yet stored. */
export interface SessionTokenPair extends SignedAccessToken {
  readonly refreshToken: Secret;
  /** Milliseconds since 1970. */
  readonly refreshEndsMs: number;
}

/** Whose tokens are signed. */
interface TokenOwner {
  readonly user: User;
  readonly accountType: string;
  /** Time when the user signed in, in milliseconds since 1970; default: now. */
  readonly signedInAtMs?: number;
}

/** Returns the latest end of a session, refreshed or not, in milliseconds since 1970. Rule: SESSION-4. */
export function sessionEndMs({ config }: Pick<Services, 'config'>, signedInAtMs: number): number {
  return signedInAtMs + config.sessionMaxDays * day;
}

/** The times of the tokens and the claims that they share. Tokens count in whole seconds, as in RFC 7519. */
function common(services: Services, { user, signedInAtMs }: TokenOwner) {
  const nowMs = Math.floor(services.clock.now() / second) * second;
  const endMs = Math.floor(sessionEndMs(services, signedInAtMs ?? nowMs) / second) * second;
  return {
    claims: { userId: user.id, orgId: user.orgId, iat: nowMs / second, iss: services.config.baseUrl },
    expiryOf: (lifetimeMs: number) => Math.min(nowMs + lifetimeMs, endMs),
  };
}

/** Signs the next access token of a session. Rules: ADDRESS-15, AUTH-12, AUTH-13, SESSION-4. */
async function signAccessToken(services: Services, owner: TokenOwner): Promise<SignedAccessToken> {
  const { claims, expiryOf } = common(services, owner);
  const { verifiedEmail: email, fullName } = owner.user;
  const accessEndsMs = expiryOf(accessTokenMs);
  const accessToken = await services.keys.sign({
    ...claims,
    email,
    fullName,
    accountType: owner.accountType,
    jti: services.newId(),
    exp: accessEndsMs / second,
    tokenType: 'session',
  });
  return { accessToken, accessEndsMs };
}

/** Signs the next pair of tokens of a session. Rules: AUTH-12, AUTH-13, AUTH-15, SESSION-4. */
export async function signTokenPair(services: Services, owner: TokenOwner): Promise<SessionTokenPair> {
  const { claims, expiryOf } = common(services, owner);
  const refreshEndsMs = expiryOf(refreshTokenMs);
  const [access, refreshToken] = await Promise.all([
    signAccessToken(services, owner),
    services.keys.signInternal({ ...claims, jti: services.newId(), exp: refreshEndsMs / second, tokenType: 'refresh' }),
  ]);
  return { ...access, refreshToken, refreshEndsMs };
}

/** The tokens of a pair. */
export type RawPair = Pick<SessionTokenPair, 'accessToken' | 'refreshToken'>;

/** The tokens of a pair as they are answered to their owner. */
export function exposePair({ accessToken, refreshToken }: RawPair) {
  return { accessToken: accessToken.expose(), refreshToken: refreshToken.expose() };
}

const purpose = 'refresh-successor';

/** A key that takes both the encryption key and the refresh token, of which the store holds only a hash. */
function successorKey({ encryption }: Pick<Services, 'encryption'>, refreshToken: Secret) {
  const derived = Buffer.from(encryption.mac(purpose, refreshToken.expose()), 'base64url');
  return encryptionWith(new Secret(derived.toString('hex')));
}

/**
 * Encrypts the pair that replaces a refresh token, so that only the owner of that token can get it again. Rule:
 * SESSION-5.
 */
export function encryptSuccessor(
  services: Pick<Services, 'encryption'>,
  refreshToken: Secret,
  { accessToken, refreshToken: next }: RawPair,
): Promise<string> {
  return successorKey(services, refreshToken).encrypt(purpose, new Secret(`${accessToken.expose()} ${next.expose()}`));
}

/** The pair that took the place of a refresh token; `null` where that cannot be read, as after a change of the encryption key. */
export async function decryptSuccessor(
  services: Pick<Services, 'encryption'>,
  refreshToken: Secret,
  sealed: string,
): Promise<RawPair | null> {
  const text = await successorKey(services, refreshToken).decrypt(purpose, sealed);
  const [accessToken, next] = text?.expose().split(' ') ?? [];
  if (accessToken === undefined || next === undefined) return null;
  return { accessToken: new Secret(accessToken), refreshToken: new Secret(next) };
}

/** Counts a sign-in that is about to succeed. Throws `tooManyRequests`. Rule: HTTP-37. */
export function countSignIn({ limits }: Services, userId: string, { network }: Origin): Promise<void> {
  return limits.count('signIn', `${userId} ${networkOf(network)}`);
}
