import { z } from 'zod';
import { userSearch } from '../../db/members/user-search.ts';
import { endpoint } from '../../http/endpoint.ts';
import { pageOf, pageQuery, pagination, toPagination } from '../../http/paging.ts';
import { components, listQuery } from '../../http/schemas.ts';
import { searchText } from '../../text/plain-text.ts';
import { invitationRecord, invitationStatuses, toInvitationRecord } from './invitation.ts';
import { countInvitations, selectInvitationPage } from './invitation-store.ts';

/** Rule: INVITE-24. */
export const listInvitations = endpoint({
  method: 'GET',
  path: '/users/invitations',
  tag: 'Invitations',
  summary: 'List the last invitation of each invited user, newest first, a page at a time',
  policy: { who: 'admin', scope: 'user:read' },
  costs: 'read',
  tool: { name: 'list_invitations', title: 'List invitations' },
  query: listQuery({
    ...pageQuery,
    status: z.enum(invitationStatuses).optional().describe('Only those that this became of'),
    search: searchText.describe('Only users with this text in their name or e-mail address, in any case'),
  }),
  response: {
    200: z
      .object({ invitations: z.array(invitationRecord), pagination })
      .register(components, { id: 'InvitationPage' }),
  },
  async handle({ db, clock }, { caller: { orgId }, query }) {
    const search = await userSearch(db.read, orgId, query.search);
    const filter = { orgId, search, status: query.status, nowMs: clock.now() };
    const page = pageOf(query);
    const totalCount = await countInvitations(db.read, filter);
    const invitations = await selectInvitationPage(db.read, filter, page);
    return { invitations: invitations.map(toInvitationRecord), pagination: toPagination(page, totalCount) };
  },
});
