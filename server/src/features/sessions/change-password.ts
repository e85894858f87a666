import { z } from 'zod';
import { unauthorized } from '../../access/bearer.ts';
import { givenPassword, newPassword } from '../../access/password-rules.ts';
import type { SessionPrincipal } from '../../access/principal.ts';
import { type Proof, refuseSignIn } from '../../access/proof.ts';
import type { ForCaller } from '../../access/reauthorization.ts';
import { appendAudit } from '../../audit-log/audit-log.ts';
import type { Origin } from '../../base/origin.ts';
import { selectActiveOrganization } from '../../db/members/organization.ts';
import { selectUserById, type User } from '../../db/members/users.ts';
import { endpoint } from '../../http/endpoint.ts';
import { networkOf } from '../../limits/limits.ts';
import { notifyOfNewPassword } from '../../mail/owner-notices.ts';
import type { Services } from '../../services.ts';
import { proveCurrentPassword, requireStrongFor, setPassword } from '../passwords/public.ts';
import { meetsSteps } from '../sign-in/public.ts';
import { revokeTokensOf } from '../tokens/public.ts';
import { beginSession } from './public.ts';
import { revokeTokens } from './session.ts';
import { endEverySignIn } from './session-end-actions.ts';
import { exposePair, signTokenPair } from './session-pair-actions.ts';
import { selectSessionState } from './session-store.ts';

interface Change extends ForCaller<SessionPrincipal> {
  readonly user: User;
  readonly proof: Proof;
  readonly passwordHash: string;
  readonly revokeTokens: boolean;
  readonly origin: Origin;
}

/** The session that takes the place of one: it went through what that did, and counts from its sign-in where a password alone is no sign-in. */
async function successorOf(services: Services, { sessionId, orgId }: SessionPrincipal) {
  const { read } = services.db;
  const before = await selectSessionState(read, sessionId);
  if (!before) throw unauthorized.sessionExpired();
  const nowMs = services.clock.now();
  const isSignIn = await meetsSteps(read, orgId, { methods: 'password', signedInAtMs: nowMs });
  const methods = before.methods === null ? null : [...new Set([...before.methods.split(' '), 'password'])];
  return { methods, signedInAtMs: isSignIn ? nowMs : before.created_at };
}

/** Puts the new password in place of the one that was proved, and begins a new session in place of all. Rules: SESSION-1, SESSION-2. */
async function change(services: Services, { caller, write, user, proof, passwordHash, revokeTokens, origin }: Change) {
  const { db, clock } = services;
  const { userId, orgId } = caller;
  const organization = await selectActiveOrganization(db.read);
  if (!organization) throw unauthorized.invalid();
  const next = await successorOf(services, caller);
  const pair = await signTokenPair(services, { user, accountType: organization.accountType, ...next });
  await write(async (tx) => {
    if (!(await proof.consume(tx))) throw refuseSignIn();
    const nowMs = clock.now();
    await setPassword(tx, { userId, passwordHash, nowMs });
    await endEverySignIn(tx, { userId, nowMs, reason: 'password-changed' });
    const end = { owner: { userId }, orgId, by: caller, reason: 'Password changed', origin };
    const revokedTokens = revokeTokens ? await revokeTokensOf(tx, services, end) : 0;
    const changes = { password: { before: '[secret]', after: '[secret]' } };
    const record = { action: 'password.changed', orgId, actor: caller, subjectId: userId, origin, changes } as const;
    await appendAudit(tx, services, { ...record, ...(revokeTokens ? { details: { revokedTokens } } : {}) });
    await beginSession(tx, services, { user, pair, ...next, origin });
  });
  return exposePair(pair);
}

/** Rules: PASSWORD-1 to PASSWORD-3, PASSWORD-20, SESSION-1, SESSION-2. */
export const changePassword = endpoint({
  method: 'POST',
  path: '/userAccount/password/reset',
  tag: 'Sign-in',
  summary: 'Change one’s own password; all sessions end, this one too, and a new one begins',
  policy: { who: 'member', sessionOnly: true },
  costs: 'nothing',
  boundedBy: 'passwordChange',
  body: z.object({ currentPassword: givenPassword, newPassword, revokeTokens }),
  response: { 200: z.object({ data: z.string(), accessToken: z.string(), refreshToken: z.string() }) },
  async handle(
    services,
    { caller, write, body: { currentPassword, newPassword: wanted, revokeTokens = false }, origin },
  ) {
    const { read } = services.db;
    const user = await selectUserById(read, caller.userId);
    // A user, or organization, that was deleted while the body arrived has not given a wrong password.
    if (!user || !(await selectActiveOrganization(read))) throw unauthorized.invalid();
    await requireStrongFor(services, user.id, { field: 'body.newPassword', password: wanted });
    const proving = { user, actor: caller, action: 'password.changed', origin } as const;
    const proof = await proveCurrentPassword(services, { ...proving, given: currentPassword });
    const passwordHash = await services.passwords.hash(wanted);
    await services.limits.count('passwordChange', `${user.id} ${networkOf(origin.network)}`);
    const pair = await change(services, { caller, write, user, proof, passwordHash, revokeTokens, origin });
    notifyOfNewPassword(services, { userId: caller.userId, revokedTokens: revokeTokens, origin });
    return { data: 'password reset', ...pair };
  },
});
