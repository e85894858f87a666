import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { toTimestamp } from '../../base/clock.ts';
import { ApiError } from '../../base/errors.ts';
import { endpoint } from '../../http/endpoint.ts';
import { id, timestamp } from '../../http/schemas.ts';
import { issueLinks } from '../links/public.ts';
import { hasPassword } from '../passwords/public.ts';
import { signsInBy } from '../sign-in/public.ts';
import { requireUser } from '../users/public.ts';
import { selectInvitation } from './invitation-store.ts';

/**
 * Rules: INVITE-23, INVITE-26. Takes a session: the link in the response lets its bearer become that user, which no
 * scope of a token grants. It is for users who have never signed in: for others it would open their account.
 */
export const issueInviteLink = endpoint({
  method: 'POST',
  path: '/users/:id/invite-link',
  tag: 'Invitations',
  summary: 'Get a link for a user who has never signed in, instead of mailing it; it is shown once',
  errors: [410],
  policy: { who: 'admin', sessionOnly: true },
  async precondition({ config }) {
    if (!config.inviteLinks) throw new ApiError('inviteLinksOff');
  },
  params: z.object({ id }),
  response: {
    201: z.object({
      link: z.string().describe('Works once'),
      expiresAt: timestamp.nullable().describe('null: the link leads to the sign-in page, and never expires'),
    }),
  },
  async handle(services, { caller, write, params: { id }, origin }) {
    const { orgId, userId } = caller;
    await services.limits.count('invite', userId);
    const link = await write(async (tx) => {
      const user = await requireUser(tx, orgId, id);
      // `hasLoggedIn` alone can be written by hand, and must unlock nothing. Rule: USER-31.
      const hasBeenIn = user.has_logged_in === 1 || user.signed_in_at !== null || (await hasPassword(tx, id));
      if (hasBeenIn) throw new ApiError('inviteAccepted');
      const earlier = await selectInvitation(tx, { orgId, userId: id, nowMs: services.clock.now() });
      await appendAudit(tx, services, { action: 'invitation.shown', orgId, actor: caller, subjectId: id, origin });
      const [made] = await issueLinks(tx, services, {
        purpose: 'invitation',
        setsPassword: await signsInBy(tx, orgId, 'password'),
        createdBy: userId,
        delivery: 'shown',
        inputs: [{ orgId, userId: id, isReturning: earlier?.isReturning === 1 }],
      });
      if (!made) throw new Error('no link was created');
      return made;
    });
    const { address, expiresAtMs } = link;
    return { link: address.expose(), expiresAt: expiresAtMs === null ? null : toTimestamp(expiresAtMs) };
  },
});
