import { setImmediate } from 'node:timers/promises';
import { nextSlug } from '../../db/counters.ts';
import type { Reader, Tx } from '../../db/database.ts';
import type { Person } from '../../db/people.ts';
import type { NewRow } from '../../db/tables.ts';
import type { Services } from '../../services.ts';
import { type DefaultGroup, defaultGroups, newGroupRow } from './group.ts';
import { insertGroups, selectDefaultGroupId, selectGroupsByIds } from './group-store.ts';
import {
  deleteMemberships,
  insertMember,
  insertMembers,
  insertMissingMembers,
  selectFirstAdministrator,
  selectIsMember,
} from './member-store.ts';
import { requireAllKnown, requireScopeFor } from './membership-change.ts';

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

/**
 * The groups that somebody wants to put people into. Throws `invalidInput`, naming those that do not exist, and the 403
 * of a token that must not say who administrates. Rules: GROUP-15, SCOPE-19.
 * @param scopes of the token; `null` for a session
 */
export async function requireGroups(
  read: Reader,
  {
    orgId,
    groupIds,
    scopes,
  }: {
    readonly orgId: string;
    readonly groupIds: readonly string[];
    readonly scopes: ReadonlySet<string> | null;
  },
): Promise<void> {
  if (groupIds.length === 0) return;
  const groups = await selectGroupsByIds(read, orgId, groupIds);
  requireScopeFor(groups, scopes);
  requireAllKnown({ userIds: [], groupIds }, { userIds: [], groups });
}

/**
 * Puts people into groups that exist; who is in one already stays there. Between two groups, readers get their turn.
 * @returns by group, who was not in it
 */
export async function joinGroups(
  tx: Tx,
  { groupIds, userIds }: { readonly groupIds: readonly string[]; readonly userIds: readonly string[] },
): Promise<ReadonlyMap<string, readonly string[]>> {
  const joined = new Map<string, readonly string[]>();
  if (userIds.length === 0) return joined;
  for (const groupId of groupIds) {
    joined.set(groupId, await insertMissingMembers(tx, groupId, userIds));
    await setImmediate();
  }
  return joined;
}

/**
 * Puts somebody into those of some groups that are still there. Nobody becomes an administrator by signing in: the admin
 * group is left out.
 */
export async function joinExistingGroups(
  tx: Tx,
  {
    orgId,
    userId,
    groupIds,
  }: { readonly orgId: string; readonly userId: string; readonly groupIds: readonly string[] },
): Promise<void> {
  const groups = groupIds.length === 0 ? [] : await selectGroupsByIds(tx, orgId, groupIds);
  const joined = groups.filter(({ type }) => type !== 'admin').map(({ id }) => id);
  await joinGroups(tx, { groupIds: joined, userIds: [userId] });
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
