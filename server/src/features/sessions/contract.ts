import type { HeldCredential } from '../../access/principal.ts';
import { batchRows, removeInBatches } from '../../db/batches.ts';
import type { Reader, Tx } from '../../db/database.ts';
import type { Person } from '../../db/people.ts';
import { type CredentialHash, hashCredential } from '../../secret.ts';
import type { Services } from '../../services.ts';
import { accessTokenMs, defaultSteps, endedKeptMs, refreshTokenMs } from './session.ts';
import {
  deleteOldTokens,
  endAllSessions,
  insertSessionTokens,
  selectAccessToken,
  selectSessionState,
} from './session-store.ts';
import { deletePassword, insertPassword, insertSteps } from './sign-in-store.ts';

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

/** Gives somebody a first password, already hashed. */
export async function createPassword(
  tx: Tx,
  password: { readonly userId: string; readonly passwordHash: string; readonly nowMs: number },
): Promise<void> {
  await insertPassword(tx, password);
}

/** Takes from somebody who is deleted every way to get in: the password, and all sessions. Rule: USER-35. */
export async function endCredentials(tx: Tx, { userId, nowMs }: { userId: string; nowMs: number }): Promise<void> {
  await deletePassword(tx, userId);
  await endAllSessions(tx, { userId }, nowMs);
}

/** Ends every session of an organization that comes back after it was deleted: nothing comes back to life. */
export async function endSessionsOfOrg(tx: Tx, { orgId, nowMs }: { orgId: string; nowMs: number }): Promise<void> {
  await endAllSessions(tx, { orgId }, nowMs);
}

/** A pair of tokens of one session, signed but not yet stored. */
export interface SessionTokenPair {
  readonly accessToken: string;
  readonly refreshToken: string;
  readonly nowMs: number;
}

/** Signs the next pair of tokens of a session. Rules: AUTH-12, AUTH-13, AUTH-15. */
export async function signTokenPair(
  { keys, clock, newId, config }: Services,
  person: Person,
  accountType: string,
): Promise<SessionTokenPair> {
  const nowMs = Math.floor(clock.now() / 1_000) * 1_000;
  const iat = nowMs / 1_000;
  const { id: userId, orgId, email, fullName } = person;
  const common = { userId, orgId, iat, iss: config.baseUrl };
  const [accessToken, refreshToken] = await Promise.all([
    keys.sign({
      ...common,
      email,
      fullName,
      accountType,
      jti: newId(),
      exp: iat + accessTokenMs / 1_000,
      tokenType: 'session',
    }),
    keys.seal({ ...common, jti: newId(), exp: iat + refreshTokenMs / 1_000, tokenType: 'refresh' }),
  ]);
  return { accessToken, refreshToken, nowMs };
}

/** Stores a pair of tokens, by their hashes. */
export async function keepTokenPair(tx: Tx, sessionId: string, pair: SessionTokenPair): Promise<void> {
  const { accessToken, refreshToken, nowMs } = pair;
  await insertSessionTokens(tx, [
    { hash: hashCredential(accessToken), session_id: sessionId, kind: 'access', expires_at: nowMs + accessTokenMs },
    { hash: hashCredential(refreshToken), session_id: sessionId, kind: 'refresh', expires_at: nowMs + refreshTokenMs },
  ]);
}

/** Forgets session tokens that ended long ago, in batches; answers how many. */
export async function pruneSessions({ db, clock }: Services): Promise<number> {
  const beforeMs = clock.now() - endedKeptMs;
  return removeInBatches(() => db.transaction((tx) => deleteOldTokens(tx, beforeMs, batchRows)));
}
