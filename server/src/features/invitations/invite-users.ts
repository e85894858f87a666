import { z } from 'zod';
import type { Write } from '../../access/reauthorization.ts';
import { ApiError, refuseScope } from '../../base/errors.ts';
import { endpoint } from '../../http/endpoint.ts';
import { idsOrNone, messageResponse } from '../../http/schemas.ts';
import type { Services } from '../../services.ts';
import { emailAddress } from '../../text/email-address.ts';
import { announceGivenBack } from '../addresses/public.ts';
import { requireGroups } from '../groups/public.ts';
import { addInvitees, type InvitingInput, makeInvitations, requireInviting, sendInvitations } from './public.ts';

const emailsMax = 1_000;
const groupsMax = 100;

const body = z.strictObject({
  emails: z
    .array(emailAddress)
    .min(1)
    .max(emailsMax)
    .transform((given) => [...new Set(given)])
    .describe('The addresses to invite; those of active accounts are left out')
    .meta({ examples: [['katherine@example.com', 'dorothy@example.com']] }),
  groupIds: idsOrNone
    .transform((given) => [...new Set(given)])
    .refine(({ length }) => length <= groupsMax, `must have at most ${groupsMax} items`)
    .optional()
    .describe('Groups for all who are new, restored or invited again; the group admin takes a session'),
});

/** Makes accounts and invitations, all or none. */
async function prepare(services: Services, write: Write, input: InvitingInput) {
  const { caller, groupIds } = input;
  const { orgId } = caller;
  return write(async (tx) => {
    await requireGroups(tx, { orgId, groupIds, caller });
    const { invitees, givenBack } = await addInvitees(tx, services, input);
    if (invitees.length === 0) throw new ApiError('everybodyActive');
    return { givenBack, invitations: await makeInvitations(tx, services, { invitees, by: caller }) };
  });
}

/** Rules: INVITE-1 to INVITE-17, LEAVER-1, LEAVER-2. */
export const inviteUsers = endpoint({
  method: 'POST',
  path: '/users/bulk/invite',
  tag: 'Invitations',
  summary:
    'Invite users by mail: a new one gets an account, a deleted one gets it back; administrators in a session only',
  policy: { who: 'admin', scope: 'user:invite' },
  tool: { name: 'invite_users', title: 'Invite users by e-mail' },
  precondition: requireInviting,
  body,
  errorMessages: [409],
  response: { 200: messageResponse },
  async handle(services, { caller, write, body: { emails, groupIds }, origin }) {
    const startedMs = performance.now();
    // Rule: INVITE-16.
    const mayGroup = caller.kind === 'session' || caller.scopes.has('usergroup:write');
    if (groupIds !== undefined && !mayGroup) throw refuseScope(['usergroup:write']);
    await services.limits.count('invite', caller.userId);
    const { invitations, givenBack } = await prepare(services, write, {
      caller,
      emails,
      groupIds: groupIds ?? [],
      origin,
    });
    await announceGivenBack(services, givenBack);
    await sendInvitations(services, invitations, startedMs);
    return { message: 'Invite sent successfully' };
  },
});
