import { z } from 'zod';
import { unauthorized } from '../../access/bearer.ts';
import { appendAudit } from '../../audit/audit-log.ts';
import type { Tx } from '../../db/database.ts';
import { selectActiveOrganization } from '../../db/organization.ts';
import { selectActivePerson } from '../../db/people.ts';
import { endpoint } from '../../http/endpoint.ts';
import { idAnswer } from '../../http/schemas.ts';
import { suspiciousSignInMail } from '../../mail/templates.ts';
import type { Origin } from '../../origin.ts';
import { hashCredential } from '../../secret.ts';
import type { Services } from '../../services.ts';
import { emailAnswer } from '../../text/email-address.ts';
import { keepTokenPair, type SessionTokenPair, signTokenPair } from './contract.ts';
import { judgeRefresh } from './session.ts';
import { endSessions, selectRefreshToken, updateActive, updateRotated } from './session-store.ts';
import { selectMailTarget } from './sign-in-store.ts';

/** Rules: AUTH-14 to AUTH-17, AUTH-33. */
export const refreshSession = endpoint({
  method: 'POST',
  path: '/userAccount/refresh/token',
  tag: 'Sign-in',
  summary: 'Exchange the refresh token, sent as bearer, for the next pair of tokens',
  policy: { who: 'holder' },
  response: {
    200: z.object({
      user: z.object({ _id: idAnswer, userId: idAnswer, orgId: idAnswer, email: emailAnswer, fullName: z.string() }),
      accessToken: z.string(),
      refreshToken: z.string(),
    }),
  },
  async handle(services, { caller, origin }) {
    const { db } = services;
    const hash = hashCredential(caller.expose());
    const known = await selectRefreshToken(db.read, hash);
    const organization = await selectActiveOrganization(db.read);
    if (!known || !organization) throw unauthorized.invalid();
    if (judgeRefresh(known, services.clock.now()) === 'good') await services.limits.count('refresh', known.user_id);
    const person = await selectActivePerson(db.read, known.user_id);
    if (!person) throw unauthorized.invalid();
    const pair = await signTokenPair(services, person, organization.accountType);
    const verdict = await db.transaction((tx) => exchange(tx, services, { hash, pair, origin }));
    if (verdict === 'reused') await warnOwner(services, { userId: person.id, organization: organization.name, origin });
    if (verdict === 'ownerGone') throw unauthorized.invalid();
    if (verdict !== 'good') throw unauthorized.sessionExpired();
    const { id, orgId, email, fullName } = person;
    const { accessToken, refreshToken } = pair;
    return { user: { _id: id, userId: id, orgId, email, fullName }, accessToken, refreshToken };
  },
});

/** Tells the owner of a session that somebody else had a copy of it. Rule: MAIL-10. */
async function warnOwner(
  { db, clock, mail }: Services,
  { userId, organization, origin }: { readonly userId: string; readonly organization: string; readonly origin: Origin },
): Promise<void> {
  const owner = await selectMailTarget(db.read, userId);
  if (!owner) return;
  const { fullName, mailTo } = owner;
  const letter = suspiciousSignInMail({ organization, fullName, at: clock.now(), network: origin.network });
  mail.sendLater('warning of a stolen session', { to: mailTo, ...letter });
}

interface Exchange {
  readonly hash: string;
  readonly pair: SessionTokenPair;
  readonly origin: Origin;
}

/** Exchanges a refresh token for a pair, or ends its family when somebody must have a copy of it. */
async function exchange(tx: Tx, services: Services, { hash, pair, origin }: Exchange) {
  const token = await selectRefreshToken(tx, hash);
  if (!token) return 'ended';
  const nowMs = services.clock.now();
  const { session_id: sessionId, user_id: userId, org_id: orgId } = token;
  const record = { orgId, actor: { userId }, subjectId: sessionId, ownerId: userId, origin };
  const verdict = judgeRefresh(token, nowMs);
  if (verdict === 'good') {
    await updateRotated(tx, hash, nowMs);
    await keepTokenPair(tx, sessionId, pair);
    await updateActive(tx, sessionId, nowMs);
    await appendAudit(tx, services, { ...record, action: 'session.refreshed' });
  }
  if (verdict === 'reused') {
    await endSessions(tx, { userId, sessionId }, { nowMs, reason: 'refresh-reuse' });
    await appendAudit(tx, services, { ...record, action: 'session.refresh-reused', outcome: 'failure' });
  }
  return verdict;
}
