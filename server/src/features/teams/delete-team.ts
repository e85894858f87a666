import { z } from 'zod';
import { requireAdministrator } from '../../access/policy.ts';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { changesBetween } from '../../audit-log/changes.ts';
import { type BackendOperation, backendOrOwn } from '../../connector/backend-or-own.ts';
import { passOperation } from '../../connector/connector-responses.ts';
import { endpoint } from '../../http/endpoint.ts';
import { deleteAllMembers } from './member-store.ts';
import { requireRight, succeeded, success } from './team.ts';
import { ownTeamId, teamId } from './team-input.ts';
import { deleteTeamRow, selectTeam } from './team-store.ts';

/** Rules: TEAM-3, TEAM-12, TEAM-19 to TEAM-21, FIT-70. */
export const deleteTeam = endpoint({
  method: 'DELETE',
  path: '/teams/:id',
  tag: 'Teams',
  summary: 'Delete a team',
  policy: { who: 'member', scope: 'team:write' },
  tool: { name: 'delete_team', title: 'Delete a team' },
  forwardsCredential: true,
  params: z.object({ id: teamId }),
  response: { 200: z.object(success) },
  async handle(services, { caller, write, params: { id: given }, origin, forwarded }) {
    const backend = {
      method: 'DELETE',
      path: `/api/v1/entity/team/${given}`,
      pass: passOperation,
      write,
    } satisfies BackendOperation;
    return backendOrOwn({ ...services, caller, forwarded }, backend, async () => {
      const id = ownTeamId(given);
      const { orgId } = caller;
      await write(async (tx, present) => {
        const { role, name, description } = requireRight(await selectTeam(tx, id, caller), caller.isAdmin, 'canDelete');
        // A caller who was an administrator at admission may not be one now.
        if (role !== 'OWNER') requireAdministrator(present);
        await deleteAllMembers(tx, id);
        await deleteTeamRow(tx, id);
        const record = { action: 'team.deleted', orgId, actor: caller, subjectId: id, origin } as const;
        const changes = changesBetween({ name, description }, null);
        await appendAudit(tx, services, { ...record, details: { name }, changes });
      });
      return succeeded('Team deleted successfully');
    });
  },
});
