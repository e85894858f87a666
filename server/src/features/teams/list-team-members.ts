import { z } from 'zod';
import { type BackendOperation, backendOrOwn } from '../../connector/backend-or-own.ts';
import { passOperation } from '../../connector/connector-responses.ts';
import { endpoint } from '../../http/endpoint.ts';
import { directoryPagination, pageOf, pageQuery, toDirectoryPagination } from '../../http/paging.ts';
import { id, listQuery } from '../../http/schemas.ts';
import { countMembers, selectMemberPage } from './member-store.ts';
import {
  directorySearch,
  foldedSearch,
  memberRecord,
  requireRight,
  sentQuery,
  succeeded,
  success,
  toMemberRecord,
} from './team.ts';
import { selectTeam } from './team-store.ts';

/** Rules: TEAM-3, TEAM-12, TEAM-16, TEAM-20, TEAM-21, TEAM-26. */
export const listTeamMembers = endpoint({
  method: 'GET',
  path: '/teams/:id/users',
  tag: 'Teams',
  summary: 'List the members of a team, by name',
  policy: { who: 'member', scope: 'team:read' },
  costs: 'read',
  tool: { name: 'list_team_members', title: 'List the members of a team' },
  forwardsCredential: true,
  params: z.object({ id: id.describe('Of the team') }),
  query: listQuery({
    ...pageQuery,
    search: directorySearch.describe('Only members with this text in their name or e-mail address, in any case'),
  }),
  response: { 200: z.object({ ...success, members: z.array(memberRecord), pagination: directoryPagination }) },
  async handle(services, { caller, params: { id }, query, forwarded }) {
    const backend = {
      method: 'GET',
      path: `/api/v1/entity/team/${id}/users`,
      query: sentQuery(query),
      pass: passOperation,
    } satisfies BackendOperation;
    return backendOrOwn({ ...services, caller, forwarded }, backend, async () => {
      requireRight(await selectTeam(services.db.read, id, caller), caller.isAdmin, 'canRead');
      const filter = { teamId: id, search: foldedSearch(query) };
      const page = pageOf(query);
      const total = await countMembers(services.db.read, filter);
      const members = await selectMemberPage(services.db.read, filter, page);
      return {
        ...succeeded('Team users fetched successfully'),
        members: members.map(toMemberRecord),
        pagination: toDirectoryPagination(page, total),
      };
    });
  },
});
