import type { Principal } from '../../access/principal.ts';
import { appendAudit } from '../../audit-log/audit-log.ts';
import type { Origin } from '../../base/origin.ts';
import { batchRows } from '../../db/batches.ts';
import type { Tx } from '../../db/database.ts';
import type { Services } from '../../services.ts';
import { deleteMemberships, selectNextOwners, updateToOwners } from './member-store.ts';

/**
 * Removes a deleted user from all teams. Where no other member owns one, the member with the highest role for the
 * longest time becomes its owner; a team without members stays, for administrators to delete. Rules: USER-35, TEAM-25.
 */
export async function leaveAllTeams(
  tx: Tx,
  services: Pick<Services, 'clock' | 'newId' | 'metrics'>,
  act: { readonly userId: string; readonly orgId: string; readonly actor: Principal; readonly origin: Origin },
): Promise<void> {
  const { userId, orgId, actor, origin } = act;
  const nextOwners = await selectNextOwners(tx, userId);
  await deleteMemberships(tx, userId);
  for (let start = 0; start < nextOwners.length; start += batchRows) {
    const some = nextOwners.slice(start, start + batchRows);
    await updateToOwners(tx, some);
    const records = some.map((nextOwner) => ({
      action: 'team.updated' as const,
      orgId,
      actor,
      subjectId: nextOwner.teamId,
      origin,
      details: { owner: nextOwner.userId, after: userId },
      changes: { owner: { before: userId, after: nextOwner.userId } },
    }));
    await appendAudit(tx, services, ...records);
  }
}
