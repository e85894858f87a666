import type { Reader } from '../../db/database.ts';
import { type Life, type Removal, removalDetails } from './removed-members.ts';

/** Returns all removals from a group. */
export async function selectRemovals(read: Reader, groupId: string): Promise<readonly Removal[]> {
  const rows = await read
    .selectFrom('audit_log')
    .where('subject_id', '=', groupId)
    .where('action', '=', 'group.members-removed')
    .select(['sequence', 'details', 'salt'])
    .execute();
  return rows.map(({ sequence, details, salt }) => ({
    sequence,
    userIds: salt === null ? null : removalDetails.parse(JSON.parse(details)).userIds,
  }));
}

/** Returns creations and deletions of some users, from the audit log. */
export async function selectLives(read: Reader, userIds: readonly string[]): Promise<readonly Life[]> {
  const rows = await read
    .selectFrom('audit_log')
    .where('subject_id', 'in', userIds)
    .where('action', 'in', ['user.created', 'user.deleted'])
    .select(['subject_id as userId', 'action', 'sequence'])
    .execute();
  return rows.flatMap(({ userId, ...life }) => (userId === null ? [] : [{ userId, ...life }]));
}
