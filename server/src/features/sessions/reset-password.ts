import { z } from 'zod';
import { newPassword } from '../../access/password-rules.ts';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { selectUserById } from '../../db/members/users.ts';
import { endpoint } from '../../http/endpoint.ts';
import { notifyOfNewPassword } from '../../mail/owner-notices.ts';
import { rememberNetwork } from '../known-networks/public.ts';
import { requireLink, useUpLink } from '../links/public.ts';
import { hasPassword, requireStrongFor, setPassword } from '../passwords/public.ts';
import { revokeTokensOf } from '../tokens/public.ts';
import { revokeTokens } from './session.ts';
import { endEverySignIn } from './session-end-actions.ts';

/** Rules: SESSION-1, SESSION-2, INVITE-12, PASSWORD-1 to PASSWORD-3, PASSWORD-9, PASSWORD-11, PASSWORD-12, PASSWORD-20. */
export const resetPassword = endpoint({
  method: 'POST',
  path: '/userAccount/password/reset/token',
  tag: 'Sign-in',
  summary: 'Set a password with the token of a reset or invitation link, sent as bearer; ends all sessions of the user',
  errors: [410, 429],
  policy: { who: 'holder', writesBy: 'link' },
  boundedBy: 'redeems a link',
  async precondition(services, held) {
    if (held) await requireLink(services.db.read, services, held);
  },
  body: z.object({ password: newPassword, revokeTokens }),
  response: { 200: z.object({ data: z.string() }) },
  async handle(services, { caller, body: { password, revokeTokens = false }, origin }) {
    const { db, passwords, clock, limits } = services;
    const { userId: ownerId } = await requireLink(db.read, services, caller);
    await requireStrongFor(services, ownerId, { field: 'body.password', password });
    const passwordHash = await passwords.hash(password);
    const { user, isFirst } = await db.transaction(async (tx) => {
      // Of several at once with one link, the first has used it up.
      const link = await requireLink(tx, services, caller);
      const { userId, orgId, purpose } = link;
      const nowMs = clock.now();
      const before = (await hasPassword(tx, userId)) ? '[secret]' : null;
      await useUpLink(tx, link, nowMs);
      await setPassword(tx, { userId, passwordHash, nowMs });
      await endEverySignIn(tx, { userId, nowMs, reason: 'password-changed' });
      // The owner of the mailbox: an attacker who guesses from elsewhere must not lock them out.
      await rememberNetwork(tx, services, { userId, address: origin.network });
      const record = { action: 'password.reset', orgId, actor: { userId }, subjectId: userId, origin } as const;
      const changes = { password: { before, after: '[secret]' } };
      const end = { owner: { userId }, orgId, by: { userId }, reason: 'Password changed', origin };
      const revoked = revokeTokens ? { revokedTokens: await revokeTokensOf(tx, services, end) } : {};
      await appendAudit(tx, services, { ...record, details: { purpose, ...revoked }, changes });
      return { user: await selectUserById(tx, userId), isFirst: before === null };
    });
    // A user who forgot the password has tried some: that must not delay the right one. A first password was chosen by
    // an invitation, and replaces none.
    if (user && !isFirst) notifyOfNewPassword(services, { userId: user.id, revokedTokens: revokeTokens, origin });
    if (user) await limits.forgive(user.email, origin.network);
    return { data: 'password reset' };
  },
});
