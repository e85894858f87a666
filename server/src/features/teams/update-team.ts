import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { changesBetween } from '../../audit-log/changes.ts';
import { type BackendOperation, backendOrOwn } from '../../connector/backend-or-own.ts';
import { passOperation } from '../../connector/connector-responses.ts';
import type { Tx } from '../../db/database.ts';
import { endpoint } from '../../http/endpoint.ts';
import { requireKnownKeys } from '../../http/known-keys.ts';
import { clearableText } from '../../text/plain-text.ts';
import { deleteAllMembers, insertMembers, selectActiveIds, selectJoinTimes, selectMembers } from './member-store.ts';
import { requireRight, succeeded, type TeamMember, teamResponse, toMemberRows, toTeamRecord } from './team.ts';
import { auditedTeam, changedTeam } from './team-change.ts';
import {
  changedMembers,
  changesMembers,
  givenMembers,
  givenUserIds,
  type MemberChange,
  namedMembers,
  ownTeamId,
  requireAllKnown,
  requireOneMeaning,
  requireOwner,
  teamId,
  teamName,
} from './team-input.ts';
import { ownLists } from './team-list-actions.ts';
import { selectTeam, updateTeam as writeTeam } from './team-store.ts';

// Loose: a backend may know more fields, and gets the whole body.
const body = z.looseObject({
  name: teamName.optional(),
  description: clearableText.meta({ examples: ['Finds things out'] }).optional(),
  members: namedMembers.optional().describe('The whole list, with at least one OWNER; owners alone may give it'),
  addUserRoles: givenMembers.optional().describe('Members to add; one who is in the team gets the role'),
  updateUserRoles: givenMembers.optional().describe('New roles of members'),
  removeUserIds: givenUserIds.optional().describe('Members to remove'),
});

/** Members who stay keep their time of joining. Rules: TEAM-22 to TEAM-24, FIT-73. */
async function changeMembers(
  tx: Tx,
  {
    id,
    org_id: orgId,
    present,
  }: { readonly id: string; readonly org_id: string; readonly present: readonly TeamMember[] },
  { change, nowMs }: { readonly change: MemberChange; readonly nowMs: number },
): Promise<void> {
  for (const field of ['members', 'addUserRoles'] as const) {
    const added = change[field] ?? [];
    requireAllKnown(added, await selectActiveIds(tx, orgId, added), field);
  }
  const named = changedMembers(present, change);
  requireOwner(named);
  const joinTimes = await selectJoinTimes(tx, id);
  await deleteAllMembers(tx, id);
  await insertMembers(
    tx,
    toMemberRows(id, named, (userId) => joinTimes.get(userId) ?? nowMs),
  );
}

/** Rules: TEAM-3, TEAM-12, TEAM-19, TEAM-21 to TEAM-24, FIT-70, FIT-72, FIT-73. */
export const updateTeam = endpoint({
  method: 'PUT',
  path: '/teams/:id',
  tag: 'Teams',
  summary: 'Change the given fields of a team: its name, its description, who is in it',
  errors: [409],
  policy: { who: 'member', scope: 'team:write' },
  tool: { name: 'update_team', title: 'Change a team' },
  forwardsCredential: true,
  params: z.object({ id: teamId }),
  body,
  response: { 200: teamResponse },
  async handle(services, { caller, write, params: { id: given }, body: asked, origin, forwarded }) {
    const backend = {
      method: 'PUT',
      path: `/api/v1/entity/team/${given}`,
      body: asked,
      pass: passOperation,
      write,
    } satisfies BackendOperation;
    return backendOrOwn({ ...services, caller, forwarded }, backend, async () => {
      const id = ownTeamId(given);
      requireKnownKeys(asked, body);
      const { name, description, members: all } = asked;
      const change = { members: all, ...ownLists(asked) };
      requireOneMeaning(change);
      const { team, members } = await write(async (tx) => {
        const isOfMembers = changesMembers(change);
        const right = isOfMembers ? 'canManageMembers' : 'canEdit';
        const before = requireRight(await selectTeam(tx, id, caller), caller.isAdmin, right);
        const after = changedTeam(before, { name, description }, services.clock.now());
        const present = await selectMembers(tx, [id]);
        if (isOfMembers) await changeMembers(tx, { ...before, present }, { change, nowMs: after.updated_at });
        const members = await selectMembers(tx, [id]);
        await writeTeam(tx, after);
        const changes = changesBetween(auditedTeam(before, present), auditedTeam(after, members));
        const record = { action: 'team.updated', orgId: caller.orgId, actor: caller, subjectId: id, origin } as const;
        await appendAudit(tx, services, { ...record, details: { fields: Object.keys(asked) }, changes });
        const role = members.find(({ userId }) => userId === caller.userId)?.role ?? null;
        return { team: { ...after, role }, members };
      });
      return { ...succeeded('Team updated successfully'), team: toTeamRecord(team, { members }, caller) };
    });
  },
});
