import { z } from 'zod';
import { appendAudit } from '../../audit/audit-log.ts';
import { RefusedError } from '../../errors.ts';
import { endpoint } from '../../http/endpoint.ts';
import { emailAddress } from '../../text/email-address.ts';
import { optionalMobile, optionalText, plainText } from '../../text/plain-text.ts';
import { addPerson } from './contract.ts';
import { toUserRecord, userRecord } from './user.ts';
import { selectUserByEmail } from './user-store.ts';

/** Rules: USER-4 to USER-8, USER-10. */
export const createUser = endpoint({
  method: 'POST',
  path: '/users',
  tag: 'Users',
  summary: 'Create a user; no mail is sent',
  policy: { who: 'admin', scope: 'user:invite' },
  body: z.object({
    fullName: plainText(),
    email: emailAddress,
    mobile: optionalMobile,
    designation: optionalText,
  }),
  response: { 201: userRecord },
  async handle(services, { caller, body, origin }) {
    const { orgId } = caller;
    const user = await services.db.transaction(async (tx) => {
      const known = await selectUserByEmail(tx, orgId, body.email);
      if (known) throw new RefusedError(known.is_deleted ? 'emailOfDeletedUser' : 'emailTaken');
      const added = await addPerson(tx, services, { ...body, orgId, syncAction: 'immediate' });
      await appendAudit(tx, services, { action: 'user.created', orgId, actor: caller, subjectId: added.id, origin });
      return added;
    });
    return toUserRecord(user);
  },
});
