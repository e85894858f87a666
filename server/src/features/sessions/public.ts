import { setTimeout as pause } from 'node:timers/promises';
import type { CredentialRecord } from '../../access/principal.ts';
import type { Proof } from '../../access/proof.ts';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { day } from '../../base/clock.ts';
import type { Origin } from '../../base/origin.ts';
import { type CredentialHash, hashCredential, type Secret } from '../../base/secret.ts';
import { batchRows, removeInBatches } from '../../db/batches.ts';
import type { Reader, Tx } from '../../db/database.ts';
import { type Organization, selectActiveOrganization } from '../../db/members/organization.ts';
import type { User } from '../../db/members/users.ts';
import { networkOf } from '../../limits/limits.ts';
import type { AllServices, Services } from '../../services.ts';
import { tryCode } from '../codes/public.ts';
import { isTicketOf, useUpTicket } from '../identities/public.ts';
import { forgetNetworks, rememberNetwork } from '../known-networks/public.ts';
import { acceptInvitations, endLinksOfOrg } from '../links/public.ts';
import { provePassword, takePassword } from '../passwords/public.ts';
import { signsInBy } from '../sign-in/public.ts';
import { endedKeptMs, rotationGraceMs } from './session.ts';
import { endEverySignIn } from './session-end-actions.ts';
import { type RawPair, type SessionTokenPair, type SignedAccessToken, sessionEndMs } from './session-pair-actions.ts';
import {
  clearSuccessors,
  deleteOldTokens,
  deleteSuperseded,
  endAllSessions,
  insertSession,
  insertSessionTokens,
  type OpenTimes,
  selectAccessToken,
  selectSessionState,
  updateRotated,
} from './session-store.ts';
import { updateHasLoggedIn } from './sign-in-store.ts';

type SessionState = Omit<NonNullable<Awaited<ReturnType<typeof selectSessionState>>>, 'methods'>;

type ConfigPart = Pick<Services, 'config'>;

function toRecord(services: ConfigPart, row: SessionState, tokenEndsMs = Number.POSITIVE_INFINITY): CredentialRecord {
  const ownerGone = row.owner_deleted === 1 || row.org_deleted === 1;
  const signedOut = row.ended_at === null ? null : 'signedOut';
  return {
    invalidReason: ownerGone ? 'ownerGone' : signedOut,
    expiresAtMs: Math.min(tokenEndsMs, sessionEndMs(services, row.created_at)),
    principal: {
      kind: 'session',
      sessionId: row.session_id,
      userId: row.user_id,
      orgId: row.org_id,
      isAdmin: Boolean(row.is_admin),
    },
  };
}

/** Looks a session token up for verification. Rules: AUTH-21, AUTH-24, AUTH-25, SESSION-4. */
export async function findSession(services: Services, hash: CredentialHash): Promise<CredentialRecord | null> {
  const row = await services.db.first(selectAccessToken, { hash });
  return row ? toRecord(services, row, row.expires_at) : null;
}

/** Looks a session up again, by its id, inside a transaction as that sees it. */
export async function findSessionAgain(
  services: ConfigPart,
  read: Reader,
  id: string,
): Promise<CredentialRecord | null> {
  const row = await selectSessionState(read, id);
  return row ? toRecord(services, row) : null;
}

/** Milliseconds over which work after responses is spread. */
const spreadMs = 300;

/**
 * Runs work that depends on the owner of an address after the response, so that all addresses get the same response in
 * the same time. Throws `tooManyRequests` for a network that asks too often. Rules: AUTH-41, PASSWORD-7.
 */
export async function runAfterResponse(
  { limits, afterResponse }: Services,
  { requestId, network }: Origin,
  { what, work }: { readonly what: string; readonly work: (origin: Origin) => Promise<void> },
): Promise<void> {
  await limits.count('recovery', networkOf(network));
  afterResponse.run(what, () => work({ requestId, network }), { spreadMs });
}

/** Returns the organization whose users may get a proof of this method by mail; `null` where mail cannot be sent. */
export async function mailingOrganization(
  { db, mail }: Services,
  method: 'password' | 'otp',
): Promise<Organization | null> {
  const organization = await selectActiveOrganization(db.read);
  if (!organization || !(await mail.settings())) return null;
  return (await signsInBy(db.read, organization.id, method)) ? organization : null;
}

/** Milliseconds, longer than any check of a code takes, so that timing reveals nothing. */
const wrongCodeMs = 100;

/**
 * Checks a code that was sent by email; returns `null` for a wrong one, in the same time for all users. Rule: AUTH-9.
 * @param userId `null` for an unknown user
 */
async function proveCode(
  services: AllServices,
  userId: string | null,
  shown: Parameters<typeof tryCode>[2],
): Promise<Proof | null> {
  const late = pause(wrongCodeMs);
  const proof = userId === null ? null : await tryCode(services, userId, shown);
  if (proof === null) await late;
  return proof;
}

/** Checks that a ticket belongs to a user and to this sign-in; returns `null` where not. Rule: AUTH-56. */
async function proveTicket(
  services: Services,
  userId: string | null,
  { ticket, signInId }: { readonly ticket: string; readonly signInId: string },
): Promise<Proof | null> {
  const shown = { userId: userId ?? '', ticket, signInId };
  const isRight = await isTicketOf(services, shown);
  return isRight && userId !== null ? { consume: (tx) => useUpTicket(tx, services, shown) } : null;
}

/** Credential that a user presents as a proof. */
interface Shown {
  readonly method: string;
  /** The sign-in that it is shown to, and its random part; `null`: an earlier release began it. */
  readonly signIn: { readonly id: string; readonly secret: Secret | null };
  /** Of the caller. */
  readonly address: string;
  readonly password?: string | undefined;
  readonly otp?: string | undefined;
  readonly oidc?: string | undefined;
}

/** Proves a user's identity; returns `null` for every kind of failure alike. Rule: AUTH-9. */
export function prove(
  services: AllServices,
  userId: string | null,
  { method, signIn, address, password = '', otp = '', oidc = '' }: Shown,
): Promise<Proof | null> {
  if (method === 'otp') return proveCode(services, userId, { given: otp, address, signIn: signIn.secret });
  if (method === 'oidc') return proveTicket(services, userId, { ticket: oidc, signInId: signIn.id });
  // An impossible proof takes as long as a wrong password.
  return provePassword(services, method === 'password' ? userId : null, password);
}

/** A session that begins. */
interface NewSession {
  readonly user: User;
  readonly pair: SessionTokenPair;
  /** Sign-in methods that the user passed; `null` where unknown. */
  readonly methods: readonly string[] | null;
  /** Time when the user signed in, in milliseconds since 1970; default: now. */
  readonly signedInAtMs?: number;
  readonly origin: Origin;
}

/** Begins a session for a user who has proved their identity. Rules: AUTH-7, AUTH-11, SESSION-6. */
export async function beginSession(
  tx: Tx,
  services: Services,
  { user, pair, methods, signedInAtMs, origin }: NewSession,
): Promise<void> {
  const { newId, clock } = services;
  const { id: userId, orgId } = user;
  const [id, nowMs] = [newId(), clock.now()];
  const owner = { org_id: orgId, user_id: userId, network: origin.network, methods: methods?.join(' ') ?? null };
  await insertSession(tx, { ...owner, id, created_at: signedInAtMs ?? nowMs, active_at: nowMs });
  await keepTokenPair(tx, id, pair);
  await rememberNetwork(tx, services, { userId, address: origin.network });
  if (await updateHasLoggedIn(tx, userId, nowMs)) await acceptInvitations(tx, userId, nowMs);
  const record = { action: 'session.started', orgId, actor: { userId }, subjectId: id, ownerId: userId } as const;
  await appendAudit(tx, services, { ...record, origin });
}

/**
 * Takes every way to sign in from a user who is deleted, or whose address another person proved: the password, all sessions
 * and links. Rules: ADDRESS-14, LINK-3, USER-35.
 */
export async function endCredentials(
  tx: Tx,
  {
    userId,
    nowMs,
    reason = 'owner-deleted',
  }: { readonly userId: string; readonly nowMs: number; readonly reason?: 'owner-deleted' | 'address-proved' },
): Promise<void> {
  await takePassword(tx, userId);
  await endEverySignIn(tx, { userId, nowMs, reason });
  await forgetNetworks(tx, userId);
}

/** Ends every session of a user, and what is not used yet; returns the number of sessions. Rule: SESSION-14. */
export async function endSignInsOf(
  tx: Tx,
  services: Pick<Services, 'clock' | 'config'>,
  userId: string,
): Promise<number> {
  const open = openTimes(services);
  return (await endEverySignIn(tx, { userId, nowMs: open.nowMs, reason: 'administrator', open })).length;
}

/** Ends every session and link of an organization that comes back after it was deleted: nothing comes back to life. */
export async function endSessionsOfOrg(tx: Tx, { orgId, nowMs }: { orgId: string; nowMs: number }): Promise<void> {
  await endAllSessions(tx, { orgId }, { nowMs, reason: 'owner-deleted' });
  await endLinksOfOrg(tx, { orgId, nowMs });
}

/** The times by which sessions are open now. */
export function openTimes({ clock, config }: Pick<Services, 'clock' | 'config'>): OpenTimes {
  const nowMs = clock.now();
  return { nowMs, signedInAfterMs: nowMs - config.sessionMaxDays * day };
}

/** A session that is refreshed again and again has so many access tokens that count. */
const accessTokensKept = 20;

/** Stores an access token, by its hash. Older ones end. Rule: SESSION-13. */
async function keepAccessToken(tx: Tx, sessionId: string, signed: SignedAccessToken): Promise<void> {
  const [hash, expires_at] = [hashCredential(signed.accessToken.expose()), signed.accessEndsMs];
  await insertSessionTokens(tx, [{ hash, session_id: sessionId, kind: 'access', expires_at }]);
  await deleteSuperseded(tx, sessionId, accessTokensKept);
}

/** Stores a pair of tokens, by their hashes. */
export async function keepTokenPair(tx: Tx, sessionId: string, pair: SessionTokenPair): Promise<void> {
  await keepAccessToken(tx, sessionId, pair);
  const [hash, expires_at] = [hashCredential(pair.refreshToken.expose()), pair.refreshEndsMs];
  await insertSessionTokens(tx, [{ hash, session_id: sessionId, kind: 'refresh', expires_at }]);
}

/** The tokens that come after a refresh. */
export interface NextTokens {
  /** The refresh token that is exchanged. */
  readonly presented: Secret;
  readonly pair: SessionTokenPair;
  /** The pair, encrypted for the owner, who may present the same token again. */
  readonly successor: string;
}

/** Stores the next tokens, and returns them; without rotation the refresh token stays. Rules: SESSION-5, SESSION-7. */
export async function keepNextTokens(
  tx: Tx,
  { config, clock }: Services,
  { presented, pair, successor, sessionId }: NextTokens & { readonly sessionId: string },
): Promise<RawPair> {
  const { accessToken } = pair;
  if (!config.refreshRotation) {
    await keepAccessToken(tx, sessionId, pair);
    return { accessToken, refreshToken: presented };
  }
  const nowMs = clock.now();
  await updateRotated(tx, hashCredential(presented.expose()), { nowMs, successor });
  await clearSuccessors(tx, { sessionId, rotatedUntilMs: nowMs - rotationGraceMs }, batchRows);
  await keepTokenPair(tx, sessionId, pair);
  return { accessToken, refreshToken: pair.refreshToken };
}

/** Removes session tokens that ended long ago, and encrypted results of exchanges; returns the number of tokens. */
export async function pruneSessions({ db, clock }: AllServices): Promise<number> {
  const nowMs = clock.now();
  const rotatedUntilMs = nowMs - rotationGraceMs;
  await removeInBatches(() => db.transaction((tx) => clearSuccessors(tx, { rotatedUntilMs }, batchRows)));
  const beforeMs = nowMs - endedKeptMs;
  return removeInBatches(() => db.transaction((tx) => deleteOldTokens(tx, beforeMs, batchRows)));
}
