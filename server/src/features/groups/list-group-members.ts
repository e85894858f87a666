import { z } from 'zod';
import { ApiError } from '../../base/errors.ts';
import { userSearch } from '../../db/members/user-search.ts';
import { endpoint } from '../../http/endpoint.ts';
import { pageOf, pageQuery, pagination, toPagination } from '../../http/paging.ts';
import { components, id, idResponse, listQuery } from '../../http/schemas.ts';
import { emailResponse } from '../../text/email-address.ts';
import { searchText } from '../../text/plain-text.ts';
import { selectGroup } from './group-store.ts';
import { countMembers, selectMemberPage } from './member-store.ts';

const member = z.object({
  _id: idResponse,
  fullName: z.string(),
  email: emailResponse,
  profilePicture: z.null().describe('Pictures are never part of a list'),
});
components.add(member, { id: 'UserGroupMember' });

/** Rule: GROUP-10. */
export const listGroupMembers = endpoint({
  method: 'GET',
  path: '/userGroups/:groupId/users',
  tag: 'User groups',
  summary: 'List the members of a group, by name',
  policy: { who: 'member', scope: 'usergroup:read' },
  costs: 'read',
  tool: { name: 'list_group_members', title: 'List the members of a group' },
  params: z.object({ groupId: id.describe('Of the group') }),
  query: listQuery({
    ...pageQuery,
    search: searchText.describe('Only members with this text in their name or e-mail address, in any case'),
  }),
  response: {
    200: z.object({ users: z.array(member), pagination }).register(components, { id: 'UserGroupMemberPage' }),
  },
  async handle({ db }, { caller: { orgId }, params: { groupId }, query }) {
    if (!(await selectGroup(db.read, orgId, groupId))) throw new ApiError('notFound');
    const which = { groupId, search: await userSearch(db.read, orgId, query.search) };
    const page = pageOf(query);
    const totalCount = await countMembers(db.read, which);
    const users = await selectMemberPage(db.read, which, page);
    return {
      users: users.map((user) => ({ ...user, profilePicture: null })),
      pagination: toPagination(page, totalCount),
    };
  },
});
