import type { Reader, Tx } from '../../db/database.ts';
import type { Person } from '../../db/people.ts';
import type { NewRow } from '../../db/tables.ts';
import type { DefaultGroup } from './group.ts';

/** Adds groups. */
export async function insertGroups(tx: Tx, groups: readonly NewRow<'user_groups'>[]): Promise<void> {
  await tx.insertInto('user_groups').values(groups).execute();
}

/** The id of one of the groups that came with the organization. */
export async function selectDefaultGroupId(tx: Tx, orgId: string, type: DefaultGroup): Promise<string> {
  const { id } = await tx
    .selectFrom('user_groups')
    .where('org_id', '=', orgId)
    .where('type', '=', type)
    .where('is_system', '=', 1)
    .select('id')
    .executeTakeFirstOrThrow();
  return id;
}

/** Adds members, as many as one statement takes; none of them may be one already. */
export async function insertMembers(tx: Tx, groupId: string, userIds: readonly string[]): Promise<void> {
  const rows = userIds.map((userId) => ({ group_id: groupId, user_id: userId }));
  await tx.insertInto('group_members').values(rows).execute();
}

/** The first active administrator of an organization; `undefined` without one. */
export function selectFirstAdministrator(read: Reader, orgId: string): Promise<Person | undefined> {
  return read
    .selectFrom('user_groups as g')
    .innerJoin('group_members as m', 'm.group_id', 'g.id')
    .innerJoin('users as u', 'u.id', 'm.user_id')
    .where('g.org_id', '=', orgId)
    .where('g.type', '=', 'admin')
    .where('u.is_deleted', '=', 0)
    .orderBy('u.id')
    .select(['u.id', 'u.org_id as orgId', 'u.email', 'u.full_name as fullName'])
    .executeTakeFirst();
}

/** Adds a member, if it isn't one already. */
export async function insertMember(tx: Tx, groupId: string, userId: string): Promise<void> {
  await tx
    .insertInto('group_members')
    .values({ group_id: groupId, user_id: userId })
    .onConflict((oc) => oc.doNothing())
    .execute();
}

/** Whether somebody is a member. */
export async function selectIsMember(tx: Tx, groupId: string, userId: string): Promise<boolean> {
  const row = await tx
    .selectFrom('group_members')
    .where('group_id', '=', groupId)
    .where('user_id', '=', userId)
    .select('user_id')
    .executeTakeFirst();
  return row !== undefined;
}

/** Takes somebody out of every group. */
export async function deleteMemberships(tx: Tx, userId: string): Promise<void> {
  await tx.deleteFrom('group_members').where('user_id', '=', userId).execute();
}
