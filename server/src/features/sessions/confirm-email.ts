import { z } from 'zod';
import { requireAdministratorOrSelf } from '../../access/policy.ts';
import { appendAudit } from '../../audit/audit-log.ts';
import { selectActivePerson } from '../../db/people.ts';
import { RefusedError } from '../../errors.ts';
import { endpoint } from '../../http/endpoint.ts';
import { id, messageAnswer } from '../../http/schemas.ts';
import { forgetCodes } from '../codes/contract.ts';
import { endLinks } from '../links/contract.ts';
import { clearRecoveryEmail, selectMailTarget } from './sign-in-store.ts';

/** Rules: AUTH-49, AUTH-50. What went to the address of before works no longer. */
export const confirmEmail = endpoint({
  method: 'POST',
  path: '/userAccount/email/confirm',
  tag: 'Sign-in',
  summary: 'Confirm the e-mail address that a personal access token set; recovery mail goes there from now on',
  policy: { who: 'member', sessionOnly: true },
  body: z
    .object({
      userId: id
        .optional()
        .describe('Whose address; administrators only. Without it, one’s own')
        .meta({ examples: ['0123456789abcdef01234567'] }),
    })
    .optional(),
  response: { 200: messageAnswer },
  async handle(services, { caller, body, origin }) {
    const { orgId } = caller;
    const userId = body?.userId ?? caller.userId;
    requireAdministratorOrSelf(caller, userId);
    await services.db.transaction(async (tx) => {
      await services.confirm(tx, caller, { adminOrSelf: userId });
      const person = await selectActivePerson(tx, userId);
      if (person?.orgId !== orgId) throw new RefusedError('notFound');
      const nowMs = services.clock.now();
      const before = (await selectMailTarget(tx, userId))?.mailTo ?? null;
      if (!(await clearRecoveryEmail(tx, userId, nowMs))) return;
      await endLinks(tx, { userId, nowMs, reason: 'email-changed' });
      await forgetCodes(tx, userId);
      const details = { email: person.email };
      const record = {
        action: 'user.email-confirmed',
        orgId,
        actor: caller,
        subjectId: userId,
        origin,
        details,
      } as const;
      await appendAudit(tx, services, { ...record, changes: { recoveryEmail: { before, after: null } } });
    });
    return { message: 'E-mail address confirmed' };
  },
});
