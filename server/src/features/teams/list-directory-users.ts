import { z } from 'zod';
import { type BackendOperation, backendOrOwn } from '../../connector/backend-or-own.ts';
import { passList } from '../../connector/connector-responses.ts';
import { userSearch } from '../../db/members/user-search.ts';
import { endpoint } from '../../http/endpoint.ts';
import { directoryPagination, pageOf, pageQuery, toDirectoryPagination } from '../../http/paging.ts';
import { listQuery } from '../../http/schemas.ts';
import { directoryUser, toDirectoryUser } from './directory-user.ts';
import { succeeded, success } from './team.ts';
import { directorySearch, foldedSearch, sentQuery } from './team-input.ts';
import { countDirectoryUsers, selectDirectoryUserPage } from './team-store.ts';

/** Rules: TEAM-1, TEAM-9, TEAM-14. */
export const listDirectoryUsers = endpoint({
  method: 'GET',
  path: '/users/graph/list',
  tag: 'Teams',
  summary: 'List the users who can be in teams, by name',
  policy: { who: 'member', scope: 'user:read' },
  costs: 'read',
  forwardsCredential: true,
  query: listQuery({
    ...pageQuery,
    search: directorySearch.describe('Only users with this text in their name or e-mail address, in any case'),
  }),
  response: { 200: z.object({ ...success, users: z.array(directoryUser), pagination: directoryPagination }) },
  async handle(services, { caller, query, forwarded }) {
    const backend = {
      method: 'GET',
      path: '/api/v1/entity/user/list',
      query: sentQuery(query),
      pass: (response) => passList(response, 'connectorUsersFailed'),
    } satisfies BackendOperation;
    return backendOrOwn({ ...services, caller, forwarded }, backend, async () => {
      const { orgId } = caller;
      const filter = { orgId, search: await userSearch(services.db.read, orgId, foldedSearch(query)) };
      const page = pageOf(query);
      const total = await countDirectoryUsers(services.db.read, filter);
      const users = await selectDirectoryUserPage(services.db.read, filter, page);
      return {
        ...succeeded('Users fetched successfully'),
        users: users.map(toDirectoryUser),
        pagination: toDirectoryPagination(page, total),
      };
    });
  },
});
