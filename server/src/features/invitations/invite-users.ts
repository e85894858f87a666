import { z } from 'zod';
import { endpoint } from '../../http/endpoint.ts';
import { messageResponse } from '../../http/schemas.ts';
import { emailAddress } from '../../text/email-address.ts';
import { emailsMax, givenRole, groupIdsToJoin } from './invitation.ts';
import { inviteByMail } from './invite-actions.ts';
import { requireInviting } from './public.ts';

const body = z.strictObject({
  emails: z
    .array(emailAddress)
    .min(1)
    .max(emailsMax)
    .transform((given) => [...new Set(given)])
    .describe('The addresses to invite; those of active accounts are left out')
    .meta({ examples: [['katherine@example.com', 'dorothy@example.com']] }),
  groupIds: groupIdsToJoin
    .optional()
    .describe('Groups for all who are new, restored or invited again; the group admin takes a session'),
  role: givenRole.optional(),
});

/** Rules: INVITE-1 to INVITE-17, LEAVER-1, LEAVER-2, FIT-77. */
export const inviteUsers = endpoint({
  method: 'POST',
  path: '/users/bulk/invite',
  tag: 'Invitations',
  summary:
    'Invite users by mail: a new one gets an account, a deleted one gets it back; administrators in a session only',
  errors: [409, 410, 502],
  policy: { who: 'admin', scope: 'user:invite' },
  tool: { name: 'invite_users', title: 'Invite users by e-mail' },
  precondition: requireInviting,
  body,
  errorMessages: [409],
  response: { 200: messageResponse },
  handle: (services, { caller, write, body, origin }) => inviteByMail(services, { ...body, caller, write, origin }),
});
