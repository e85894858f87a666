import { z } from 'zod';
import { type BackendOperation, backendOrOwn } from '../../connector/backend-or-own.ts';
import { passOperation } from '../../connector/connector-responses.ts';
import { endpoint } from '../../http/endpoint.ts';
import { selectMembers } from './member-store.ts';
import { requireRight, succeeded, teamResponse, toTeamRecord } from './team.ts';
import { ownTeamId, teamId } from './team-input.ts';
import { selectTeam } from './team-store.ts';

/** Rules: TEAM-3, TEAM-12, TEAM-20, TEAM-21, FIT-70. */
export const getTeam = endpoint({
  method: 'GET',
  path: '/teams/:id',
  tag: 'Teams',
  summary: 'Get one team with all its members',
  policy: { who: 'member', scope: 'team:read' },
  costs: 'read',
  tool: { name: 'get_team', title: 'Get a team' },
  forwardsCredential: true,
  params: z.object({ id: teamId }),
  response: { 200: teamResponse },
  async handle(services, { caller, params: { id: given }, forwarded }) {
    const backend = {
      method: 'GET',
      path: `/api/v1/entity/team/${given}`,
      pass: passOperation,
    } satisfies BackendOperation;
    return backendOrOwn({ ...services, caller, forwarded }, backend, async () => {
      const id = ownTeamId(given);
      const team = requireRight(await selectTeam(services.db.read, id, caller), caller.isAdmin, 'canRead');
      const members = await selectMembers(services.db.read, [id]);
      return { ...succeeded('Team fetched successfully'), team: toTeamRecord(team, { members }, caller) };
    });
  },
});
