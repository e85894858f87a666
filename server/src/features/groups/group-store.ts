import type { Tx } from '../../db/database.ts';
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

/** Adds a member, if it isn't one already. */
export async function insertMember(tx: Tx, groupId: string, userId: string): Promise<void> {
  await tx
    .insertInto('group_members')
    .values({ group_id: groupId, user_id: userId })
    .onConflict((oc) => oc.doNothing())
    .execute();
}
