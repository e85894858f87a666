import { z } from 'zod';
import { type BackendOperation, backendOrOwn } from '../../connector/backend-or-own.ts';
import { passOperation } from '../../connector/connector-responses.ts';
import { userSearch } from '../../db/members/user-search.ts';
import { endpoint } from '../../http/endpoint.ts';
import { directoryPagination, pageOf, pageQuery, toDirectoryPagination } from '../../http/paging.ts';
import { listQuery } from '../../http/schemas.ts';
import { countMembers, selectMemberPage } from './member-store.ts';
import { memberRecord, requireRight, succeeded, success, teamRecord, toMemberRecord, toTeamRecord } from './team.ts';
import { directorySearch, foldedSearch, ownTeamId, sentQuery, teamId } from './team-input.ts';
import { selectTeam } from './team-store.ts';

/** Rules: TEAM-3, TEAM-12, TEAM-16, TEAM-20, TEAM-21, TEAM-26, TEAM-27, FIT-70, FIT-75. */
export const listTeamMembers = endpoint({
  method: 'GET',
  path: '/teams/:id/users',
  tag: 'Teams',
  summary: 'List the members of a team, by name',
  policy: { who: 'member', scope: 'team:read' },
  costs: 'read',
  tool: { name: 'list_team_members', title: 'List the members of a team' },
  forwardsCredential: true,
  params: z.object({ id: teamId }),
  query: listQuery({
    ...pageQuery,
    search: directorySearch.describe('Only members with this text in their name or e-mail address, in any case'),
  }),
  response: {
    200: z.object({
      ...success,
      team: teamRecord.describe('With the members of this page'),
      members: z.array(memberRecord),
      pagination: directoryPagination.extend({ totalCount: z.int() }),
    }),
  },
  async handle(services, { caller, params: { id: given }, query, forwarded }) {
    const backend = {
      method: 'GET',
      path: `/api/v1/entity/team/${given}/users`,
      query: sentQuery(query),
      pass: passOperation,
    } satisfies BackendOperation;
    return backendOrOwn({ ...services, caller, forwarded }, backend, async () => {
      const id = ownTeamId(given);
      const team = requireRight(await selectTeam(services.db.read, id, caller), caller.isAdmin, 'canRead');
      const filter = { teamId: id, search: await userSearch(services.db.read, caller.orgId, foldedSearch(query)) };
      const page = pageOf(query);
      const total = await countMembers(services.db.read, filter);
      const members = await selectMemberPage(services.db.read, filter, page);
      const memberCount = filter.search
        ? await countMembers(services.db.read, { teamId: id, search: undefined })
        : total;
      return {
        ...succeeded('Team users fetched successfully'),
        team: toTeamRecord(team, { members, memberCount }, caller),
        members: members.map(toMemberRecord),
        pagination: { ...toDirectoryPagination(page, total), totalCount: total },
      };
    });
  },
});
