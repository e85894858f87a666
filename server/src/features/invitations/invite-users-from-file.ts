import { endpoint } from '../../http/endpoint.ts';
import { formField, uploadedForm } from '../../http/media.ts';
import { messageResponse } from '../../http/schemas.ts';
import { emailsInFile } from './emails-in-file.ts';
import { givenRole, groupIdsToJoin } from './invitation.ts';
import { inviteByMail } from './invite-actions.ts';
import { requireInviting } from './public.ts';

const body = uploadedForm({
  groupIds: formField(groupIdsToJoin).describe('Groups for all who are invited, as a JSON array').optional(),
  role: givenRole.optional(),
});

/** Rules: INVITE-1 to INVITE-17, LEAVER-1, LEAVER-2, FIT-77, FIT-78. */
export const inviteUsersFromFile = endpoint({
  method: 'POST',
  path: '/users/bulk/invite/upload',
  tag: 'Invitations',
  summary: 'Invite the users whose addresses are in a CSV file, as POST /users/bulk/invite does',
  errors: [409, 410, 502],
  policy: { who: 'admin', scope: 'user:invite' },
  precondition: requireInviting,
  body,
  errorMessages: [409],
  response: { 200: messageResponse },
  async handle(services, { caller, write, body: { file, groupIds, role }, origin }) {
    return inviteByMail(services, { caller, write, emails: emailsInFile(file), groupIds, role, origin });
  },
});
