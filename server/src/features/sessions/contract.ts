import type { HeldCredential } from '../../access/principal.ts';
import { second } from '../../clock.ts';
import { batchRows, removeInBatches } from '../../db/batches.ts';
import type { Reader, Tx } from '../../db/database.ts';
import type { Person } from '../../db/people.ts';
import { RefusedError } from '../../errors.ts';
import { type CredentialHash, hashCredential } from '../../secret.ts';
import type { Services } from '../../services.ts';
import { endLinks, endLinksOfOrg } from '../links/contract.ts';
import { accessTokenMs, defaultSteps, endedKeptMs, refreshTokenMs } from './session.ts';
import {
  deleteOldTokens,
  endAllSessions,
  insertSessionTokens,
  selectAccessToken,
  selectSessionState,
} from './session-store.ts';
import { deletePassword, insertSteps, selectSteps, upsertPassword } from './sign-in-store.ts';

type SessionState = NonNullable<Awaited<ReturnType<typeof selectSessionState>>>;

function toHeld(row: SessionState, expiresAtMs: number | null): HeldCredential {
  const ownerGone = row.owner_deleted === 1 || row.org_deleted === 1;
  const signedOut = row.ended_at === null ? null : 'signedOut';
  return {
    ended: ownerGone ? 'ownerGone' : signedOut,
    expiresAtMs,
    principal: {
      kind: 'session',
      sessionId: row.session_id,
      userId: row.user_id,
      orgId: row.org_id,
      isAdmin: Boolean(row.is_admin),
    },
  };
}

/** Looks a session token up for verification. Rules: AUTH-21, AUTH-24, AUTH-25. */
export async function findSession({ db }: Services, hash: CredentialHash): Promise<HeldCredential | null> {
  const row = await db.first(selectAccessToken, { hash });
  return row ? toHeld(row, row.expires_at) : null;
}

/** Looks a session up again, by its id, inside a transaction as that sees it. */
export async function findSessionAgain(read: Reader, id: string): Promise<HeldCredential | null> {
  const row = await selectSessionState(read, id);
  return row ? toHeld(row, null) : null;
}

/** Sets how the people of a new organization sign in. Rule: ORG-10. */
export async function createSignInSteps(tx: Tx, orgId: string, nowMs: number): Promise<void> {
  await insertSteps(tx, { orgId, steps: defaultSteps, nowMs });
}

/** Whether the people of an organization sign in with a password, in one step or another. */
export async function signsInByPassword(read: Reader, orgId: string): Promise<boolean> {
  const steps = await selectSteps(read, orgId);
  return steps.some(({ allowedMethods }) => allowedMethods.some(({ type }) => type === 'password'));
}

/** Gives somebody a first password, already hashed. */
export async function createPassword(
  tx: Tx,
  password: { readonly userId: string; readonly passwordHash: string; readonly nowMs: number },
): Promise<void> {
  await upsertPassword(tx, password);
}

/** Takes from somebody who is deleted every way to get in: the password, all sessions and links. Rules: LINK-3, USER-35. */
export async function endCredentials(tx: Tx, { userId, nowMs }: { userId: string; nowMs: number }): Promise<void> {
  await deletePassword(tx, userId);
  await endAllSessions(tx, { userId }, nowMs);
  await endLinks(tx, { userId, nowMs, reason: 'owner-deleted' });
}

/** Ends every session and link of an organization that comes back after it was deleted: nothing comes back to life. */
export async function endSessionsOfOrg(tx: Tx, { orgId, nowMs }: { orgId: string; nowMs: number }): Promise<void> {
  await endAllSessions(tx, { orgId }, nowMs);
  await endLinksOfOrg(tx, { orgId, nowMs });
}

/** The 401 of every way to fail at proving who one is, alike. Rule: AUTH-9. */
export function refuseSignIn(): RefusedError {
  return new RefusedError('signInRefused', { headers: { 'www-authenticate': 'Bearer realm="latchkey"' } });
}

/** An access token, signed but not yet stored. */
export interface SignedAccessToken {
  readonly accessToken: string;
  readonly nowMs: number;
}

/** A pair of tokens of one session, signed but not yet stored. */
export interface SessionTokenPair extends SignedAccessToken {
  readonly refreshToken: string;
}

/** What a session's tokens say alike. */
function commonClaims({ config }: Services, { id: userId, orgId }: Person, nowMs: number) {
  return { userId, orgId, iat: nowMs / 1_000, iss: config.baseUrl };
}

/** Tokens count in whole seconds, as in RFC 7519. */
function wholeSecond({ clock }: Services): number {
  return Math.floor(clock.now() / second) * second;
}

/**
 * Signs the next access token of a session. Rules: AUTH-12, AUTH-13.
 * @param nowMs a whole second
 */
export async function signAccessToken(
  services: Services,
  { person, accountType }: { readonly person: Person; readonly accountType: string },
  nowMs: number = wholeSecond(services),
): Promise<SignedAccessToken> {
  const { email, fullName } = person;
  const accessToken = await services.keys.sign({
    ...commonClaims(services, person, nowMs),
    email,
    fullName,
    accountType,
    jti: services.newId(),
    exp: (nowMs + accessTokenMs) / 1_000,
    tokenType: 'session',
  });
  return { accessToken, nowMs };
}

/** Signs the next pair of tokens of a session. Rules: AUTH-12, AUTH-13, AUTH-15. */
export async function signTokenPair(
  services: Services,
  person: Person,
  accountType: string,
): Promise<SessionTokenPair> {
  const nowMs = wholeSecond(services);
  const common = commonClaims(services, person, nowMs);
  const exp = (nowMs + refreshTokenMs) / 1_000;
  const [access, refreshToken] = await Promise.all([
    signAccessToken(services, { person, accountType }, nowMs),
    services.keys.seal({ ...common, jti: services.newId(), exp, tokenType: 'refresh' }),
  ]);
  return { ...access, refreshToken };
}

/** Stores an access token, by its hash. */
export async function keepAccessToken(
  tx: Tx,
  sessionId: string,
  { accessToken, nowMs }: SignedAccessToken,
): Promise<void> {
  const hash = hashCredential(accessToken);
  await insertSessionTokens(tx, [{ hash, session_id: sessionId, kind: 'access', expires_at: nowMs + accessTokenMs }]);
}

/** Stores a pair of tokens, by their hashes. */
export async function keepTokenPair(tx: Tx, sessionId: string, pair: SessionTokenPair): Promise<void> {
  await keepAccessToken(tx, sessionId, pair);
  const [hash, expires_at] = [hashCredential(pair.refreshToken), pair.nowMs + refreshTokenMs];
  await insertSessionTokens(tx, [{ hash, session_id: sessionId, kind: 'refresh', expires_at }]);
}

/** Forgets session tokens that ended long ago, in batches; answers how many. */
export async function pruneSessions({ db, clock }: Services): Promise<number> {
  const beforeMs = clock.now() - endedKeptMs;
  return removeInBatches(() => db.transaction((tx) => deleteOldTokens(tx, beforeMs, batchRows)));
}
