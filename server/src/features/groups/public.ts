import { setImmediate } from 'node:timers/promises';
import type { Principal } from '../../access/principal.ts';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { changesBetween } from '../../audit-log/changes.ts';
import type { Origin } from '../../base/origin.ts';
import { batchRows } from '../../db/batches.ts';
import { nextSlug } from '../../db/counters.ts';
import type { Reader, Tx } from '../../db/database.ts';
import type { User } from '../../db/members/users.ts';
import type { NewRow } from '../../db/schema/tables.ts';
import type { Services } from '../../services.ts';
import { foldCase } from '../../text/plain-text.ts';
import { type DefaultGroup, defaultGroups, newGroupRow } from './group.ts';
import { insertGroups, selectDefaultGroupId, selectGroupsByIds, selectGroupsLike } from './group-store.ts';
import { type GroupPlan, type ImportedGroup, planGroup } from './imported-group.ts';
import {
  deleteMemberships,
  insertMember,
  insertMembers,
  insertMissingMembers,
  selectActiveIds,
  selectFirstAdministrator,
  selectIsMember,
  selectMembersAmong,
} from './member-store.ts';
import { requireAllKnown, requireSessionToPromote } from './membership-change.ts';
import { selectLives, selectRemovals } from './removal-store.ts';
import { takenOutAmong } from './removed-members.ts';

/** Services that are needed to write with an audit record. */
type WritingServices = Pick<Services, 'clock' | 'newId'> & {
  readonly metrics: Pick<Services['metrics'], 'countActivity'>;
};

/**
 * Makes the groups that come with an organization. Rule: ORG-10.
 * @param known ids of those that have one already, and when they were made, in milliseconds since 1970
 */
export async function createDefaultGroups(
  tx: Tx,
  { clock, newId }: Pick<Services, 'clock' | 'newId'>,
  known: {
    readonly orgId: string;
    readonly ids?: Readonly<Partial<Record<DefaultGroup, string>>>;
    readonly createdAt?: number;
  },
): Promise<void> {
  const { orgId, ids = {}, createdAt: nowMs = clock.now() } = known;
  const groups: NewRow<'user_groups'>[] = [];
  for (const name of defaultGroups) {
    groups.push({
      id: ids[name] ?? newId(),
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

/** Adds a user to one of the default groups. */
export async function joinDefaultGroup(
  tx: Tx,
  { orgId, userId, type }: { readonly orgId: string; readonly userId: string; readonly type: DefaultGroup },
): Promise<void> {
  await insertMember(tx, await selectDefaultGroupId(tx, orgId, type), userId);
}

/** Adds new users, as many as fit in one statement, to one of the default groups. */
export async function joinDefaultGroupTogether(
  tx: Tx,
  of: { readonly orgId: string; readonly userIds: readonly string[]; readonly type: DefaultGroup },
): Promise<void> {
  const { orgId, userIds, type } = of;
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
export function findFirstAdministrator(read: Reader, orgId: string): Promise<User | undefined> {
  return selectFirstAdministrator(read, orgId);
}

/**
 * Checks the groups that users are to be put into. Throws `invalidInput`, naming those that do not exist, and
 * `administratorBySession` for a token that names the `admin` group. Rules: GROUP-15, LEAVER-1.
 */
export async function requireGroups(
  read: Reader,
  of: { readonly orgId: string; readonly groupIds: readonly string[]; readonly caller: Principal },
): Promise<void> {
  const { orgId, groupIds, caller } = of;
  if (groupIds.length === 0) return;
  const groups = await selectGroupsByIds(read, orgId, groupIds);
  requireSessionToPromote(groups, caller);
  requireAllKnown({ userIds: [], groupIds }, { userIds: [], groups });
}

/** Returns the id of the group whose members are administrators. */
export function adminGroupId(read: Reader, orgId: string): Promise<string> {
  return selectDefaultGroupId(read, orgId, 'admin');
}

/**
 * Adds users to existing groups; members stay members. Readers get their turn between two groups.
 * @returns by group, the users who were not in it
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
 * Adds a user to those of some groups that still exist. The admin group is left out: signing in makes no one an
 * administrator.
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

/** Returns whether a user is in one of the default groups. */
export async function isInDefaultGroup(
  tx: Tx,
  { orgId, userId, type }: { readonly orgId: string; readonly userId: string; readonly type: DefaultGroup },
): Promise<boolean> {
  return selectIsMember(tx, await selectDefaultGroupId(tx, orgId, type), userId);
}

/** The administrators among some users. */
export async function findAdministratorsAmong(
  read: Reader,
  { orgId, userIds }: { readonly orgId: string; readonly userIds: readonly string[] },
): Promise<readonly string[]> {
  if (userIds.length === 0) return [];
  return selectMembersAmong(read, await selectDefaultGroupId(read, orgId, 'admin'), userIds);
}

/** Removes a deleted user from all groups. Rule: USER-35. */
export async function leaveAllGroups(tx: Tx, userId: string): Promise<void> {
  await deleteMemberships(tx, userId);
}

/** Plans the import of a group. Rules: CLI-16, CLI-17. */
export async function planImportedGroup(read: Reader, orgId: string, group: ImportedGroup): Promise<GroupPlan> {
  const like = { orgId, id: group.id ?? null, nameKey: foldCase(group.name) };
  return planGroup(group, await selectGroupsLike(read, like));
}

/** Creates a group of a file; id and name must be free. Returns its id. Rules: CLI-17, CLI-19. */
export async function addImportedGroup(
  tx: Tx,
  services: WritingServices,
  { orgId, group, origin }: { readonly orgId: string; readonly group: ImportedGroup; readonly origin: Origin },
): Promise<string> {
  const { name } = group;
  const type = group.type === 'standard' ? 'standard' : 'custom';
  const id = group.id ?? services.newId();
  const slug = await nextSlug(tx, 'usergroup');
  await insertGroups(tx, [newGroupRow({ id, orgId, slug, name, type }, group.createdAt ?? services.clock.now())]);
  const record = { action: 'group.created', orgId, actor: null, subjectId: id, origin } as const;
  const details = { name, type, imported: true };
  await appendAudit(tx, services, { ...record, details, changes: changesBetween(null, { name, type }) });
  return id;
}

/** Returns the users that a file may add to a group: active, not in it, never removed from it. Rule: CRED-6. */
export async function findJoining(
  read: Reader,
  of: { readonly orgId: string; readonly groupId: string; readonly userIds: readonly string[] },
): Promise<Joining> {
  const { orgId, groupId, userIds } = of;
  if (userIds.length === 0) return { joining: [], takenOut: 0 };
  const members = new Set(await selectMembersAmong(read, groupId, userIds));
  const outsiders = (await selectActiveIds(read, orgId, userIds)).filter((id) => !members.has(id));
  if (outsiders.length === 0) return { joining: [], takenOut: 0 };
  const [removals, lives] = [await selectRemovals(read, groupId), await selectLives(read, outsiders)];
  const takenOut = takenOutAmong(outsiders, { removals, lives });
  return { joining: outsiders.filter((id) => !takenOut.has(id)), takenOut: takenOut.size };
}

/** Users that a file adds to a group, and the number of those who are not added, since they were removed here. */
interface Joining {
  readonly joining: readonly string[];
  readonly takenOut: number;
}

/**
 * Adds those users to the group of a file who may be added, as many as fit in one statement. Removes none. Rules:
 * CLI-17, CLI-19, CRED-6.
 */
export async function joinImportedGroup(
  tx: Tx,
  services: WritingServices,
  input: {
    readonly orgId: string;
    readonly groupId: string;
    readonly userIds: readonly string[];
    readonly origin: Origin;
  },
): Promise<Joining> {
  const { orgId, groupId: subjectId, origin } = input;
  const found = await findJoining(tx, input);
  const userIds = found.joining.toSorted();
  for (let start = 0; start < userIds.length; start += batchRows) {
    await insertMembers(tx, subjectId, userIds.slice(start, start + batchRows));
  }
  if (userIds.length === 0) return found;
  const record = { action: 'group.members-added', orgId, actor: null, subjectId, origin } as const;
  const changes = { members: { before: [], after: userIds } };
  await appendAudit(tx, services, { ...record, details: { userIds, imported: true }, changes });
  return found;
}
