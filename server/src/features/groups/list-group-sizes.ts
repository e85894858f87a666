import { z } from 'zod';
import { endpoint } from '../../http/endpoint.ts';
import { listQuery } from '../../http/schemas.ts';
import { selectGroupSizes } from './group-store.ts';

/** Rule: GROUP-7. */
export const listGroupSizes = endpoint({
  method: 'GET',
  path: '/userGroups/stats/list',
  tag: 'User groups',
  summary: 'How many members the groups have, by name of the group',
  policy: { who: 'member', scope: 'usergroup:read' },
  costs: 'read',
  tool: { name: 'list_group_sizes', title: 'Count the members of each group' },
  query: listQuery({}),
  response: {
    200: z.array(
      z.object({
        _id: z.string().describe('The name of the group'),
        count: z.int().describe('How many groups have this name'),
        totalUsers: z.int(),
        avgUsers: z.number(),
      }),
    ),
  },
  async handle({ db }, { caller: { orgId } }) {
    const sizes = await selectGroupSizes(db.read, orgId);
    // A name belongs to one group only; the form is older than that rule.
    return sizes.map(({ name, users }) => ({ _id: name, count: 1, totalUsers: users, avgUsers: users }));
  },
});
