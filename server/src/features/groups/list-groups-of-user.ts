import { z } from 'zod';
import { ApiError } from '../../base/errors.ts';
import { selectUserById } from '../../db/members/users.ts';
import { endpoint } from '../../http/endpoint.ts';
import { id, idResponse, listQuery } from '../../http/schemas.ts';
import { selectGroupsOf } from './group-store.ts';

/** Rule: GROUP-8. */
export const listGroupsOfUser = endpoint({
  method: 'GET',
  path: '/userGroups/users/:userId',
  tag: 'User groups',
  summary: 'List the groups that a user is in',
  policy: { who: 'member', scope: 'usergroup:read' },
  costs: 'read',
  tool: { name: 'list_groups_of_user', title: 'List the groups of a user' },
  params: z.object({ userId: id.describe('Of the user') }),
  query: listQuery({}),
  response: { 200: z.array(z.object({ _id: idResponse, name: z.string(), type: z.string() })) },
  async handle({ db }, { caller: { orgId }, params: { userId } }) {
    const user = await selectUserById(db.read, userId);
    if (user?.orgId !== orgId) throw new ApiError('notFound');
    return selectGroupsOf(db.read, orgId, userId);
  },
});
