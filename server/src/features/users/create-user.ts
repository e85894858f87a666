import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { changesBetween } from '../../audit-log/changes.ts';
import { ApiError } from '../../base/errors.ts';
import { endpoint } from '../../http/endpoint.ts';
import { emailAddress } from '../../text/email-address.ts';
import { optionalMobile, optionalText, plainText } from '../../text/plain-text.ts';
import { announceGivenBack, giveBackAddresses } from '../addresses/public.ts';
import { addUser } from './public.ts';
import { auditedUser, toUserRecord, userRecord } from './user.ts';
import { selectOwnerOfEmail } from './user-store.ts';

/** Rules: USER-4 to USER-8, USER-10. */
export const createUser = endpoint({
  method: 'POST',
  path: '/users',
  tag: 'Users',
  summary: 'Create a user; no mail is sent',
  errors: [409],
  policy: { who: 'admin', scope: 'user:invite' },
  idempotency: { secrets: [] },
  tool: { name: 'create_user', title: 'Create a user' },
  body: z.object({
    fullName: plainText().meta({ examples: ['Katherine Johnson'] }),
    email: emailAddress
      .describe('The address to sign in with; unique among all users, deleted ones included')
      .meta({ examples: ['katherine@example.com'] }),
    mobile: optionalMobile.describe('10 to 15 digits, optionally after a +').meta({ examples: ['+442079460001'] }),
    designation: optionalText.describe('Job title').meta({ examples: ['Mathematician'] }),
  }),
  response: { 201: userRecord },
  location: ({ _id }) => `/users/${_id}`,
  async handle(services, { caller, write, remember, body, origin }) {
    const { orgId } = caller;
    const { user, givenBack } = await write(async (tx) => {
      const givenBack = await giveBackAddresses(tx, services, { orgId, emails: [body.email], by: caller, origin });
      const holder = await selectOwnerOfEmail(tx, { orgId, email: body.email, forId: null });
      if (holder) throw new ApiError(holder.is_deleted ? 'emailOfDeletedUser' : 'emailTaken');
      const added = await addUser(tx, services, { ...body, orgId, syncAction: 'immediate' });
      const record = { action: 'user.created', orgId, actor: caller, subjectId: added.id, origin } as const;
      await appendAudit(tx, services, { ...record, changes: changesBetween(null, auditedUser(added)) });
      return { user: await remember(tx, toUserRecord(added)), givenBack };
    });
    await announceGivenBack(services, givenBack);
    return user;
  },
});
