import { z } from 'zod';
import type { Principal } from '../../access/principal.ts';
import { type BackendOperation, backendOrOwn } from '../../connector/backend-or-own.ts';
import { passList } from '../../connector/connector-responses.ts';
import { endpoint, type Forwarded } from '../../http/endpoint.ts';
import { directoryPagination, pageOf, pageQuery, toDirectoryPagination } from '../../http/paging.ts';
import { id, listQuery, queryTimeOrMs } from '../../http/schemas.ts';
import type { Services } from '../../services.ts';
import { selectFirstMembers } from './member-store.ts';
import { byTeam, countOf, succeeded, success, teamRecord, toTeamRecord } from './team.ts';
import { directorySearch, foldedSearch, sentQuery } from './team-input.ts';
import { countTeamsOf, selectTeamPageOf } from './team-store.ts';

/** Of each team; GET /teams/:id/users has them all. */
const membersShown = 50;

const query = listQuery({
  ...pageQuery,
  search: directorySearch.describe('Only teams with this text in their name or description, in any case'),
  created_by: id.optional().describe('Only teams that this user created'),
  created_after: queryTimeOrMs.optional().describe('Only teams created at or after this time'),
  created_before: queryTimeOrMs.optional().describe('Only teams created at or before this time'),
});
const response = {
  200: z.object({ ...success, teams: z.array(teamRecord), pagination: directoryPagination }),
};

interface Asked {
  readonly caller: Principal;
  readonly query: z.output<typeof query>;
  readonly forwarded: Forwarded;
}

async function handle(services: Services, { caller, query: asked, forwarded }: Asked) {
  const backend = {
    method: 'GET',
    path: '/api/v1/entity/user/teams',
    query: sentQuery(asked),
    pass: (response) => passList(response, 'connectorTeamsFailed'),
  } satisfies BackendOperation;
  return backendOrOwn({ ...services, caller, forwarded }, backend, async () => {
    const filter = {
      orgId: caller.orgId,
      userId: caller.userId,
      search: foldedSearch(asked),
      createdBy: asked.created_by,
      createdAfterMs: asked.created_after,
      createdBeforeMs: asked.created_before,
    };
    const page = pageOf(asked);
    const total = await countTeamsOf(services.db.read, filter);
    const teams = await selectTeamPageOf(services.db.read, filter, page);
    const teamIds = teams.map(({ id }) => id);
    const membersOf = byTeam(await selectFirstMembers(services.db.read, teamIds, membersShown));
    return {
      ...succeeded('User teams fetched successfully'),
      teams: teams.map((team) => {
        const members = membersOf(team.id);
        return toTeamRecord(team, { members, memberCount: countOf(members) }, caller);
      }),
      pagination: toDirectoryPagination(page, total),
    };
  });
}

/** Rules: TEAM-2, TEAM-10, TEAM-15, TEAM-17, TEAM-26, FIT-71. */
export const listTeamsOfUser = endpoint({
  method: 'GET',
  path: '/users/teams/list',
  operationId: 'listMyTeamsWithMembers',
  tag: 'Teams',
  summary: "List the caller's teams with all their members, newest first",
  policy: { who: 'member', scope: 'team:read' },
  costs: 'read',
  forwardsCredential: true,
  query,
  response,
  handle,
});

/** Rules: TEAM-2, TEAM-10, TEAM-15, TEAM-17, TEAM-26, FIT-71. */
export const listOwnTeams = endpoint({
  method: 'GET',
  path: '/teams/user/teams',
  tag: 'Teams',
  summary: "List the caller's teams, as /users/teams/list does",
  policy: { who: 'member', scope: 'team:read' },
  costs: 'read',
  tool: {
    name: 'list_my_teams',
    title: 'List my teams',
    description: 'Lists the teams that you are in, newest first, a page at a time.',
  },
  forwardsCredential: true,
  query,
  response,
  handle,
});
