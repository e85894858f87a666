import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { changesBetween } from '../../audit-log/changes.ts';
import { type BackendOperation, backendOrOwn } from '../../connector/backend-or-own.ts';
import { passOperation } from '../../connector/connector-responses.ts';
import type { Tx } from '../../db/database.ts';
import { endpoint } from '../../http/endpoint.ts';
import { id } from '../../http/schemas.ts';
import { clearableText } from '../../text/plain-text.ts';
import { deleteAllMembers, insertMembers, selectActiveIds, selectJoinTimes, selectMembers } from './member-store.ts';
import {
  type NamedMember,
  namedMembers,
  requireAllKnown,
  requireOwner,
  requireRight,
  succeeded,
  teamName,
  teamResponse,
  toMemberRows,
  toTeamRecord,
} from './team.ts';
import { auditedTeam, changedTeam } from './team-change.ts';
import { selectTeam, updateTeam as writeTeam } from './team-store.ts';

/** Members who stay keep their time of joining. Rules: TEAM-22 to TEAM-24. */
async function replaceMembers(
  tx: Tx,
  { id, org_id: orgId }: { readonly id: string; readonly org_id: string },
  { named, nowMs }: { readonly named: readonly NamedMember[]; readonly nowMs: number },
): Promise<void> {
  requireAllKnown(named, await selectActiveIds(tx, orgId, named));
  requireOwner(named);
  const joinTimes = await selectJoinTimes(tx, id);
  await deleteAllMembers(tx, id);
  await insertMembers(
    tx,
    toMemberRows(id, named, (userId) => joinTimes.get(userId) ?? nowMs),
  );
}

/** Rules: TEAM-3, TEAM-12, TEAM-19, TEAM-21 to TEAM-24. */
export const updateTeam = endpoint({
  method: 'PUT',
  path: '/teams/:id',
  tag: 'Teams',
  summary: 'Replace the given fields of a team: its name, its description, the whole list of its members',
  policy: { who: 'member', scope: 'team:write' },
  tool: { name: 'update_team', title: 'Change a team' },
  forwardsCredential: true,
  params: z.object({ id: id.describe('Of the team') }),
  // Loose: a backend may know more fields, and gets the whole body.
  body: z.looseObject({
    name: teamName.optional(),
    description: clearableText.meta({ examples: ['Finds things out'] }).optional(),
    members: namedMembers.optional().describe('The whole list, with at least one OWNER; owners alone may give it'),
  }),
  response: { 200: teamResponse },
  async handle(services, { caller, write, params: { id }, body, origin, forwarded }) {
    const backend = {
      method: 'PUT',
      path: `/api/v1/entity/team/${id}`,
      body,
      pass: passOperation,
      write,
    } satisfies BackendOperation;
    return backendOrOwn({ ...services, caller, forwarded }, backend, async () => {
      const { name, description, members: named } = body;
      const { team, members } = await write(async (tx) => {
        const right = named ? 'canManageMembers' : 'canEdit';
        const { role: _, ...before } = requireRight(await selectTeam(tx, id, caller), caller.isAdmin, right);
        const { after, fields } = changedTeam(before, { name, description, members: named }, services.clock.now());
        const earlier = await selectMembers(tx, [id]);
        if (named) await replaceMembers(tx, before, { named, nowMs: after.updated_at });
        const members = await selectMembers(tx, [id]);
        if (fields.length > 0) {
          await writeTeam(tx, after);
          const changes = changesBetween(auditedTeam(before, earlier), auditedTeam(after, members));
          const record = { action: 'team.updated', orgId: caller.orgId, actor: caller, subjectId: id, origin } as const;
          await appendAudit(tx, services, { ...record, details: { fields }, changes });
        }
        return { team: after, members };
      });
      return { ...succeeded('Team updated successfully'), team: toTeamRecord(team, members, caller) };
    });
  },
});
