import { nextSlug } from '../../db/counters.ts';
import type { Reader, Tx } from '../../db/database.ts';
import type { Person } from '../../db/people.ts';
import type { NewRow } from '../../db/tables.ts';
import type { Services } from '../../services.ts';
import { type DefaultGroup, defaultGroups, newGroupRow } from './group.ts';
import { insertGroups, selectDefaultGroupId } from './group-store.ts';
import {
  deleteMemberships,
  insertMember,
  insertMembers,
  selectFirstAdministrator,
  selectIsMember,
} from './member-store.ts';

/** Makes the groups that come with an organization. Rule: ORG-10. */
export async function createDefaultGroups(
  tx: Tx,
  { clock, newId }: Pick<Services, 'clock' | 'newId'>,
  orgId: string,
): Promise<void> {
  const nowMs = clock.now();
  const groups: NewRow<'user_groups'>[] = [];
  for (const name of defaultGroups) {
    groups.push({
      id: newId(),
      org_id: orgId,
      slug: await nextSlug(tx, 'usergroup'),
      name,
      name_key: name,
      type: name,
      is_system: 1,
      is_deleted: 0,
      created_at: nowMs,
      updated_at: nowMs,
    });
  }
  await insertGroups(tx, groups);
}

/** Puts somebody into one of the groups that came with the organization. */
export async function joinDefaultGroup(
  tx: Tx,
  { orgId, userId, type }: { readonly orgId: string; readonly userId: string; readonly type: DefaultGroup },
): Promise<void> {
  await insertMember(tx, await selectDefaultGroupId(tx, orgId, type), userId);
}

/** Puts new people, as many as one statement takes, into one of the groups that came with the organization. */
export async function joinDefaultGroupTogether(
  tx: Tx,
  {
    orgId,
    userIds,
    type,
  }: { readonly orgId: string; readonly userIds: readonly string[]; readonly type: DefaultGroup },
): Promise<void> {
  await insertMembers(tx, await selectDefaultGroupId(tx, orgId, type), userIds);
}

/** Makes a group with its first members, as many as one statement takes; the name must be free. */
export async function createGroup(
  tx: Tx,
  { clock, newId }: Pick<Services, 'clock' | 'newId'>,
  group: { readonly orgId: string; readonly name: string; readonly userIds: readonly string[] },
): Promise<void> {
  const { orgId, name, userIds } = group;
  const nowMs = clock.now();
  const id = newId();
  await insertGroups(tx, [
    newGroupRow({ id, orgId, slug: await nextSlug(tx, 'usergroup'), name, type: 'custom' }, nowMs),
  ]);
  if (userIds.length > 0) await insertMembers(tx, id, userIds);
}

/** The first active administrator of an organization; `undefined` without one. */
export function findFirstAdministrator(read: Reader, orgId: string): Promise<Person | undefined> {
  return selectFirstAdministrator(read, orgId);
}

/** Whether somebody is in one of the groups that came with the organization. */
export async function isInDefaultGroup(
  tx: Tx,
  { orgId, userId, type }: { readonly orgId: string; readonly userId: string; readonly type: DefaultGroup },
): Promise<boolean> {
  return selectIsMember(tx, await selectDefaultGroupId(tx, orgId, type), userId);
}

/** Takes somebody who is deleted out of every group. Rule: USER-35. */
export async function leaveAllGroups(tx: Tx, userId: string): Promise<void> {
  await deleteMemberships(tx, userId);
}
