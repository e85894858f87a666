import type { Reader, Tx } from '../../db/database.ts';
import { type UserSearch, userMatches } from '../../db/members/user-search.ts';
import type { User } from '../../db/members/users.ts';
import { verifiedEmail } from '../../db/members/users.ts';

/** Adds members, as many as one statement takes; none of them may be one already. */
export async function insertMembers(tx: Tx, groupId: string, userIds: readonly string[]): Promise<void> {
  const rows = userIds.map((userId) => ({ group_id: groupId, user_id: userId }));
  await tx.insertInto('group_members').values(rows).execute();
}

/** The first active administrator of an organization; `undefined` without one. */
export function selectFirstAdministrator(read: Reader, orgId: string): Promise<User | undefined> {
  return read
    .selectFrom('user_groups as g')
    .innerJoin('group_members as m', 'm.group_id', 'g.id')
    .innerJoin('users as u', 'u.id', 'm.user_id')
    .where('g.org_id', '=', orgId)
    .where('g.type', '=', 'admin')
    .where('u.is_deleted', '=', 0)
    .orderBy('u.id')
    .select(['u.id', 'u.org_id as orgId', 'u.email', 'u.full_name as fullName'])
    .select(verifiedEmail('u').as('verifiedEmail'))
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

/** Returns whether a user is a member. */
export async function selectIsMember(tx: Tx, groupId: string, userId: string): Promise<boolean> {
  const row = await tx
    .selectFrom('group_members')
    .where('group_id', '=', groupId)
    .where('user_id', '=', userId)
    .select('user_id')
    .executeTakeFirst();
  return row !== undefined;
}

/** Removes a user from all groups. */
export async function deleteMemberships(tx: Tx, userId: string): Promise<void> {
  await tx.deleteFrom('group_members').where('user_id', '=', userId).execute();
}

/** The ids of the members of a group, in order of their creation, to be read in batches. */
export function memberIds(read: Reader, groupId: string) {
  return read.selectFrom('group_members').where('group_id', '=', groupId).orderBy('user_id').select('user_id');
}

interface MemberFilter {
  readonly groupId: string;
  readonly search: UserSearch | undefined;
}

function members(read: Reader, { groupId, search }: MemberFilter) {
  const query = read
    .selectFrom('group_members as m')
    .innerJoin('users as u', 'u.id', 'm.user_id')
    .where('m.group_id', '=', groupId);
  if (!search) return query;
  return query.where((eb) => eb.or(userMatches('u', search)));
}

/** Returns the number of members of a group that match a search. */
export async function countMembers(read: Reader, filter: MemberFilter): Promise<number> {
  const row = await members(read, filter)
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow();
  return row.total;
}

/** One page of the members of a group, by name. */
export function selectMemberPage(
  read: Reader,
  filter: MemberFilter,
  { offset, limit }: { readonly offset: number; readonly limit: number },
) {
  return members(read, filter)
    .orderBy('u.name_key')
    .orderBy('u.id')
    .limit(limit)
    .offset(offset)
    .select(['u.id as _id', 'u.full_name as fullName', verifiedEmail('u').as('email')])
    .execute();
}

/** Returns the ids of the active users among some ids. */
export async function selectActiveIds(read: Reader, orgId: string, ids: readonly string[]): Promise<string[]> {
  const rows = await read
    .selectFrom('users')
    .where('id', 'in', ids)
    .where('org_id', '=', orgId)
    .where('is_deleted', '=', 0)
    .select('id')
    .execute();
  return rows.map((row) => row.id);
}

/** Returns the members of a group among some users. */
export async function selectMembersAmong(read: Reader, groupId: string, ids: readonly string[]): Promise<string[]> {
  const rows = await read
    .selectFrom('group_members')
    .where('group_id', '=', groupId)
    .where('user_id', 'in', ids)
    .select('user_id')
    .execute();
  return rows.map((row) => row.user_id);
}

/** Adds users to a group; members stay members. Returns the ids of those who were not members. */
export async function insertMissingMembers(tx: Tx, groupId: string, userIds: readonly string[]): Promise<string[]> {
  const rows = await tx
    .insertInto('group_members')
    .values(userIds.map((userId) => ({ group_id: groupId, user_id: userId })))
    .onConflict((oc) => oc.doNothing())
    .returning('user_id')
    .execute();
  return rows.map((row) => row.user_id);
}

/** Removes users from a group; returns the ids of those who were members. */
export async function deleteMembers(tx: Tx, groupId: string, userIds: readonly string[]): Promise<string[]> {
  const rows = await tx
    .deleteFrom('group_members')
    .where('group_id', '=', groupId)
    .where('user_id', 'in', userIds)
    .returning('user_id')
    .execute();
  return rows.map((row) => row.user_id);
}

/** Removes all members of a group. */
export async function deleteAllMembers(tx: Tx, groupId: string): Promise<void> {
  await tx.deleteFrom('group_members').where('group_id', '=', groupId).execute();
}
