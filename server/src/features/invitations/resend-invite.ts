import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { ApiError } from '../../base/errors.ts';
import { endpoint } from '../../http/endpoint.ts';
import { id, messageResponse } from '../../http/schemas.ts';
import { requireUser } from '../users/public.ts';
import { selectInvitation } from './invitation-store.ts';
import { makeInvitations, requireInviting, sendInvitations } from './public.ts';

/** Rules: INVITE-18 to INVITE-22, LEAVER-2. */
export const resendInvite = endpoint({
  method: 'POST',
  path: '/users/:id/resend-invite',
  tag: 'Invitations',
  summary:
    'Send the invitation again to a user who has never signed in; the earlier link stops working; to an administrator in a session only',
  errors: [410, 502],
  policy: { who: 'admin', scope: 'user:invite' },
  tool: { name: 'resend_invite', title: 'Send an invitation again' },
  precondition: requireInviting,
  params: z.object({ id: id.describe('Of the user') }),
  response: { 200: messageResponse },
  async handle(services, { caller, write, params: { id }, origin }) {
    const startedMs = performance.now();
    const { orgId, userId } = caller;
    await services.limits.count('invite', userId);
    const invitations = await write(async (tx) => {
      const user = await requireUser(tx, orgId, id);
      if (user.has_logged_in === 1) throw new ApiError('inviteAccepted');
      const earlier = await selectInvitation(tx, { orgId, userId: id, nowMs: services.clock.now() });
      const invitee = { ...user, isReturning: earlier?.isReturning === 1 };
      await appendAudit(tx, services, { action: 'user.invited', orgId, actor: caller, subjectId: id, origin });
      return makeInvitations(tx, services, { invitees: [invitee], by: caller });
    });
    await sendInvitations(services, invitations, startedMs);
    return { message: 'Invite sent successfully' };
  },
});
