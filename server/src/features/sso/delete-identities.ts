import { z } from 'zod';
import { selectMailTarget } from '../../db/members/mail-targets.ts';
import { endpoint } from '../../http/endpoint.ts';
import { id } from '../../http/schemas.ts';
import { unlinkedMail } from '../../mail/notice-emails.ts';
import { sendNotice } from '../../mail/notices.ts';
import { unlinkUser } from './public.ts';

/**
 * Rule: FIT-8. Takes an administrator in a session: the next user whom the provider sends with the address of the account
 * gets it, which no scope of a token grants, and a user who is about to leave must not prepare it.
 */
export const deleteIdentities = endpoint({
  method: 'DELETE',
  path: '/users/:id/identities',
  operationId: 'deleteUserIdentities',
  tag: 'Users',
  summary:
    'Forget which identities at the provider of single sign-on a user is linked to, and end the sessions of the user; the next one who comes with the address of the account is linked',
  errors: [409],
  policy: { who: 'admin', sessionOnly: true },
  params: z.object({ id: id.describe('Of the user') }),
  response: {
    200: z.object({
      unlinked: z.int().describe('How many links this forgot'),
      ended: z.int().describe('How many sessions this ended'),
    }),
  },
  async handle(services, { caller, write, params: { id: userId }, origin }) {
    const { oidc, mail, clock } = services;
    const settings = (await oidc.client())?.settings;
    const lacking = (await mail.settings()) ? null : ('otp' as const);
    const guard = settings ? { settings, lacking } : null;
    const { orgId } = caller;
    const done = await write((tx) => unlinkUser(tx, services, { userId, orgId, by: caller, guard, origin }));
    if (done.unlinked > 0) {
      const at = clock.now();
      sendNotice(services, 'single sign-on unlinked', {
        to: (read) => selectMailTarget(read, userId),
        email: (reader) => unlinkedMail(reader, { at, ended: done.ended }),
      });
    }
    return done;
  },
});
