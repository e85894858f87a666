import type { Reader } from '../../db/database.ts';

/** A removal of members of a group, as the audit log has it. */
export interface Removal {
  readonly sequence: number;
  /** `null`: the record was erased with the person who did it, and nobody knows who was removed. */
  readonly userIds: readonly string[] | null;
}

function userIdsOf(details: string): readonly string[] {
  const { userIds } = JSON.parse(details) as { readonly userIds?: unknown };
  return Array.isArray(userIds) ? userIds.filter((id) => typeof id === 'string') : [];
}

/** Who was ever removed from a group. */
export async function selectRemovals(read: Reader, groupId: string): Promise<readonly Removal[]> {
  const rows = await read
    .selectFrom('audit_log')
    .where('subject_id', '=', groupId)
    .where('action', '=', 'group.members-removed')
    .select(['sequence', 'details', 'salt'])
    .execute();
  return rows.map(({ sequence, details, salt }) => ({ sequence, userIds: salt === null ? null : userIdsOf(details) }));
}

/** When each of some users was made, and whether one was ever deleted, as the audit log has it. */
export async function selectLives(read: Reader, userIds: readonly string[]) {
  const rows = await read
    .selectFrom('audit_log')
    .where('subject_id', 'in', userIds)
    .where('action', 'in', ['user.created', 'user.deleted'])
    .select(['subject_id as userId', 'action', 'sequence'])
    .execute();
  return rows.flatMap(({ userId, ...life }) => (userId === null ? [] : [{ userId, ...life }]));
}
