import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { ApiError } from '../../base/errors.ts';
import { endpoint } from '../../http/endpoint.ts';
import { id } from '../../http/schemas.ts';
import { notifyAdministrators, reviewForDeleted, reviewResponse, settleLeavers } from '../leavers/public.ts';
import { removeUser, requireUser } from '../users/public.ts';
import { selectInvitation } from './invitation-store.ts';

/** Rules: INVITE-25, LEAVER-4, LEAVER-6. Ending the link alone would leave an account that gets in by recovering its password. */
export const revokeInvitation = endpoint({
  method: 'DELETE',
  path: '/users/:id/invitation',
  tag: 'Invitations',
  summary: 'Revoke an invitation that was not accepted, and delete the account that was created for it',
  errors: [409],
  policy: { who: 'admin', scope: 'user:delete' },
  tool: { name: 'revoke_invitation', title: 'Take an invitation back' },
  params: z.object({ id: id.describe('Of the user') }),
  response: { 200: reviewResponse },
  async handle(services, { caller, write, params: { id }, origin }) {
    const { orgId } = caller;
    const review = await write(async (tx) => {
      const user = await requireUser(tx, orgId, id);
      const invitation = await selectInvitation(tx, { orgId, userId: id, nowMs: services.clock.now() });
      if (!invitation) throw new ApiError('notFound');
      if (invitation.status === 'accepted') throw new ApiError('inviteAccepted');
      await removeUser(tx, services, { user, by: caller, origin });
      const record = { orgId, actor: caller, subjectId: id, origin };
      await appendAudit(
        tx,
        services,
        { ...record, action: 'invitation.revoked' },
        { ...record, action: 'user.deleted', changes: { isDeleted: { before: false, after: true } } },
      );
      return settleLeavers(tx, services, [id]);
    });
    notifyAdministrators(services, { caller, kind: 'deleted', userIds: [id], review });
    return { message: 'Invitation revoked successfully', ...reviewForDeleted(caller, review) };
  },
});
