import { z } from 'zod';
import { endpoint } from '../../http/endpoint.ts';
import { pageOf, pageQuery, pagination, toPagination } from '../../http/paging.ts';
import { components, listQuery, queryTime } from '../../http/schemas.ts';
import { searchText } from '../../text/plain-text.ts';
import { groupListItem, toGroupListItem } from './group.ts';
import { countGroups, selectGroupPage } from './group-store.ts';

/** Rules: GROUP-4 to GROUP-6. */
export const listGroups = endpoint({
  method: 'GET',
  path: '/userGroups',
  tag: 'User groups',
  summary: 'List the groups, in order of creation',
  policy: { who: 'member', scope: 'usergroup:read' },
  costs: 'read',
  tool: { name: 'list_groups', title: 'List or search groups' },
  query: listQuery({
    ...pageQuery,
    search: searchText.describe('Only groups with this text in their name, in any case'),
    createdAfter: queryTime.optional().describe('Only groups created at or after this time'),
    createdBefore: queryTime.optional().describe('Only groups created at or before this time'),
  }),
  response: {
    200: z.object({ groups: z.array(groupListItem), pagination }).register(components, { id: 'UserGroupPage' }),
  },
  async handle({ db }, { caller: { orgId }, query }) {
    const { search, createdAfter: createdAfterMs, createdBefore: createdBeforeMs } = query;
    const filter = { orgId, search, createdAfterMs, createdBeforeMs };
    const page = pageOf(query);
    const totalCount = await countGroups(db.read, filter);
    const groups = await selectGroupPage(db.read, filter, page);
    return { groups: groups.map(toGroupListItem), pagination: toPagination(page, totalCount) };
  },
});
