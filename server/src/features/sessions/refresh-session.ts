import { z } from 'zod';
import { unauthorized } from '../../access/bearer.ts';
import { appendAudit } from '../../audit-log/audit-log.ts';
import type { Origin } from '../../base/origin.ts';
import { hashCredential } from '../../base/secret.ts';
import type { Tx } from '../../db/database.ts';
import { selectMailTarget } from '../../db/members/mail-targets.ts';
import { selectActiveOrganization } from '../../db/members/organization.ts';
import { selectUserById } from '../../db/members/users.ts';
import { endpoint } from '../../http/endpoint.ts';
import { sendNotice } from '../../mail/notices.ts';
import { suspiciousSignInMail } from '../../mail/templates.ts';
import type { Services } from '../../services.ts';
import { meetsSteps } from '../sign-in/public.ts';
import { keepNextTokens, type NextTokens } from './public.ts';
import { isRefreshRecorded, type StoredRefreshToken, sessionUser, validateRefresh } from './session.ts';
import {
  decryptSuccessor,
  encryptSuccessor,
  exposePair,
  type RawPair,
  sessionEndMs,
  signTokenPair,
} from './session-pair-actions.ts';
import { endSession, selectRefreshToken, updateActive } from './session-store.ts';

/** Rules: AUTH-14, AUTH-15, AUTH-17, AUTH-33, SESSION-4 to SESSION-7. */
export const refreshSession = endpoint({
  method: 'POST',
  path: '/userAccount/refresh/token',
  tag: 'Sign-in',
  summary: 'Exchange the refresh token, sent as bearer, for the next pair of tokens',
  policy: { who: 'holder', writesBy: 'refreshToken' },
  boundedBy: 'refresh',
  response: {
    200: z.object({
      user: sessionUser,
      accessToken: z.string(),
      refreshToken: z.string(),
    }),
  },
  async handle(services, { caller, origin }) {
    const { db } = services;
    const known = await selectRefreshToken(db.read, hashCredential(caller.expose()));
    const organization = await selectActiveOrganization(db.read);
    if (!known || !organization) throw unauthorized.invalid();
    const present = verdictOn(services, known);
    if (present === 'good' || present === 'rotated') {
      await services.limits.count('refresh', known.user_id);
      await services.limits.countWrite({ userId: known.user_id, isAdmin: known.is_admin === 1 });
    }
    const user = await selectUserById(db.read, known.user_id);
    if (!user) throw unauthorized.invalid();
    const signedInAtMs = known.created_at;
    const pair = await signTokenPair(services, { user, accountType: organization.accountType, signedInAtMs });
    const successor = await encryptSuccessor(services, caller, pair);
    const given = { presented: caller, pair, successor, origin };
    const outcome = await db.transaction((tx) => exchange(tx, services, given));
    if (outcome === 'reused') warnOwner(services, user.id, origin);
    if (outcome === 'ownerGone') throw unauthorized.invalid();
    const next = typeof outcome === 'string' ? null : await outcome();
    if (!next) throw unauthorized.sessionExpired();
    const { id, orgId, verifiedEmail: email, fullName } = user;
    return { user: { _id: id, userId: id, orgId, email, fullName }, ...exposePair(next) };
  },
});

function verdictOn(services: Services, token: StoredRefreshToken) {
  return validateRefresh(token, services.clock.now(), sessionEndMs(services, token.created_at));
}

/** Notifies the owner of a session that a copy of it was used. Rule: MAIL-10. */
function warnOwner(services: Services, userId: string, { network }: Origin): void {
  const at = services.clock.now();
  sendNotice(services, 'session reused', {
    to: (read) => selectMailTarget(read, userId),
    email: (reader) => suspiciousSignInMail({ ...reader, at, network }),
  });
}

type Exchange = NextTokens & { readonly origin: Origin };

/** Outcome of an exchange: a function that returns the tokens, or the reason why there are none. */
type Outcome = (() => Promise<RawPair | null>) | 'reused' | 'ended' | 'ownerGone';

/**
 * Exchanges a refresh token for a pair. The first exchange decides which; a session that others must have a copy of, or
 * that did not go through the steps of today, ends. Rules: AUTH-17, SESSION-5 to SESSION-7.
 */
async function exchange(tx: Tx, services: Services, given: Exchange): Promise<Outcome> {
  const { presented, origin } = given;
  const token = await selectRefreshToken(tx, hashCredential(presented.expose()));
  if (!token) return 'ended';
  const { session_id: sessionId, user_id: userId, org_id: orgId, successor } = token;
  const nowMs = services.clock.now();
  const record = { orgId, actor: { userId }, subjectId: sessionId, ownerId: userId, origin };
  const verdict = verdictOn(services, token);
  if (verdict === 'ended' || verdict === 'ownerGone') return verdict;
  if (verdict === 'reused') {
    await endSession(tx, { userId, sessionId }, { nowMs, reason: 'refresh-reuse' });
    await appendAudit(tx, services, { ...record, action: 'session.refresh-reused', outcome: 'failure' });
    return verdict;
  }
  if (!(await meetsSteps(tx, orgId, { methods: token.methods, signedInAtMs: token.created_at }))) {
    const reason = 'sign-in-steps';
    await endSession(tx, { userId, sessionId }, { nowMs, reason });
    await appendAudit(tx, services, { ...record, action: 'session.ended', details: { reason } });
    return 'ended';
  }
  if (verdict === 'rotated') return async () => (successor ? decryptSuccessor(services, presented, successor) : null);
  const next = await keepNextTokens(tx, services, { ...given, sessionId });
  await updateActive(tx, sessionId, nowMs);
  if (isRefreshRecorded(token, nowMs)) await appendAudit(tx, services, { ...record, action: 'session.refreshed' });
  return async () => next;
}
