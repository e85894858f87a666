import { z } from 'zod';
import { newPassword } from '../../access/password-rules.ts';
import { appendAudit } from '../../audit/audit-log.ts';
import { selectActivePerson } from '../../db/people.ts';
import { endpoint } from '../../http/endpoint.ts';
import { rememberNetwork } from '../known-networks/contract.ts';
import { requireLink, useUpLink } from '../links/contract.ts';
import { hasPassword, requireStrongFor, setPassword } from '../passwords/contract.ts';
import { forgetSignIns } from '../sign-in/contract.ts';
import { endSessions } from './session-store.ts';

/** Rules: INVITE-12, PASSWORD-1 to PASSWORD-3, PASSWORD-9, PASSWORD-11, PASSWORD-12, PASSWORD-20. */
export const resetPassword = endpoint({
  method: 'POST',
  path: '/userAccount/password/reset/token',
  tag: 'Sign-in',
  summary: 'Set a password with the token of a reset or invitation link, sent as bearer; ends all sessions of the user',
  policy: { who: 'holder' },
  async precondition(services, held) {
    if (held) await requireLink(services.db.read, services, held);
  },
  body: z.object({ password: newPassword }),
  response: { 200: z.object({ data: z.string() }) },
  async handle(services, { caller, body: { password }, origin }) {
    const { db, passwords, clock, limits } = services;
    const { userId: ownerId } = await requireLink(db.read, services, caller);
    await requireStrongFor(services, ownerId, { field: 'body.password', password });
    const passwordHash = await passwords.hash(password);
    const person = await db.transaction(async (tx) => {
      // Of several at once with one link, the first has used it up.
      const link = await requireLink(tx, services, caller);
      const { userId, orgId, purpose } = link;
      const nowMs = clock.now();
      const before = (await hasPassword(tx, userId)) ? '[secret]' : null;
      await useUpLink(tx, link, nowMs);
      await setPassword(tx, { userId, passwordHash, nowMs });
      await endSessions(tx, { userId }, { nowMs, reason: 'password-changed' });
      await forgetSignIns(tx, userId);
      // The owner of the mailbox: whoever guesses from elsewhere must not keep them out.
      await rememberNetwork(tx, services, { userId, address: origin.network });
      const record = { action: 'password.reset', orgId, actor: { userId }, subjectId: userId, origin } as const;
      const changes = { password: { before, after: '[secret]' } };
      await appendAudit(tx, services, { ...record, details: { purpose }, changes });
      return selectActivePerson(tx, userId);
    });
    // Whoever forgot the password has tried some: that must not keep the right one waiting.
    if (person) await limits.forgive(person.email, origin.network);
    return { data: 'password reset' };
  },
});
