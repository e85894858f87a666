import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { changesBetween } from '../../audit-log/changes.ts';
import { type BackendOperation, backendOrOwn } from '../../connector/backend-or-own.ts';
import { passOperation } from '../../connector/connector-responses.ts';
import { endpoint } from '../../http/endpoint.ts';
import { clearableText } from '../../text/plain-text.ts';
import { insertMembers, selectActiveIds, selectMembers } from './member-store.ts';
import {
  namedMembers,
  requireAllKnown,
  succeeded,
  teamName,
  teamResponse,
  toMemberRows,
  toTeamRecord,
  withCreator,
} from './team.ts';
import { searchKeys } from './team-change.ts';
import { insertTeam } from './team-store.ts';

/** Rules: TEAM-3, TEAM-12, TEAM-18, TEAM-24. */
export const createTeam = endpoint({
  method: 'POST',
  path: '/teams',
  tag: 'Teams',
  summary: 'Create a team, whose owner the caller is',
  policy: { who: 'member', scope: 'team:write' },
  tool: { name: 'create_team', title: 'Create a team' },
  forwardsCredential: true,
  // Loose: a backend may know more fields, and gets the whole body.
  body: z.looseObject({
    name: teamName,
    description: clearableText.meta({ examples: ['Finds things out'] }).optional(),
    members: namedMembers.optional().describe('The caller need not be named'),
  }),
  response: { 201: teamResponse },
  async handle(services, { caller, write, body, origin, forwarded }) {
    const backend = {
      method: 'POST',
      path: '/api/v1/entity/team',
      body,
      pass: passOperation,
      write,
    } satisfies BackendOperation;
    return backendOrOwn({ ...services, caller, forwarded }, backend, async () => {
      const { orgId, userId } = caller;
      await services.limits.count('team', userId);
      const { name, description = null, members: named = [] } = body;
      const { id, nowMs } = { id: services.newId(), nowMs: services.clock.now() };
      const own = { id, org_id: orgId, name, description, created_by: userId, created_at: nowMs, updated_at: nowMs };
      const team = { ...own, ...searchKeys(own) };
      const all = withCreator(named, userId);
      const members = await write(async (tx) => {
        requireAllKnown(named, await selectActiveIds(tx, orgId, named));
        await insertTeam(tx, team);
        await insertMembers(
          tx,
          toMemberRows(id, all, () => nowMs),
        );
        const details = { name, members: all };
        await appendAudit(tx, services, {
          action: 'team.created',
          orgId,
          actor: caller,
          subjectId: id,
          origin,
          details,
          changes: changesBetween(null, { name, description, members: all }),
        });
        return selectMembers(tx, [id]);
      });
      return { ...succeeded('Team created successfully'), team: toTeamRecord(team, members, caller) };
    });
  },
});
