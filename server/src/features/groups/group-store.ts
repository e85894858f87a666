import type { Reader, Tx } from '../../db/database.ts';
import type { NewRow } from '../../db/schema/tables.ts';
import { contains } from '../../db/search.ts';
import type { DefaultGroup, StoredGroup } from './group.ts';

/** Adds groups. */
export async function insertGroups(tx: Tx, groups: readonly NewRow<'user_groups'>[]): Promise<void> {
  await tx.insertInto('user_groups').values(groups).execute();
}

/** The id of one of the groups that came with the organization. */
export async function selectDefaultGroupId(read: Reader, orgId: string, type: DefaultGroup): Promise<string> {
  const { id } = await read
    .selectFrom('user_groups')
    .where('org_id', '=', orgId)
    .where('type', '=', type)
    .where('is_system', '=', 1)
    .select('id')
    .executeTakeFirstOrThrow();
  return id;
}

function activeGroups(read: Reader, orgId: string) {
  return read.selectFrom('user_groups').where('user_groups.org_id', '=', orgId).where('user_groups.is_deleted', '=', 0);
}

/** One group that isn't deleted. */
export function selectGroup(read: Reader, orgId: string, id: string): Promise<StoredGroup | undefined> {
  return activeGroups(read, orgId).where('id', '=', id).selectAll().executeTakeFirst();
}

/** The groups among some ids that aren't deleted. */
export function selectGroupsByIds(read: Reader, orgId: string, ids: readonly string[]): Promise<StoredGroup[]> {
  return activeGroups(read, orgId).where('id', 'in', ids).selectAll().execute();
}

/** The group that has a folded name, deleted ones left aside. */
export function selectGroupByName(read: Reader, orgId: string, nameKey: string): Promise<StoredGroup | undefined> {
  return activeGroups(read, orgId).where('name_key', '=', nameKey).selectAll().executeTakeFirst();
}

/** Groups that have an id, or a folded name, deleted ones too, and those that came with the organization. */
export function selectGroupsLike(
  read: Reader,
  like: { readonly orgId: string; readonly id: string | null; readonly nameKey: string },
): Promise<StoredGroup[]> {
  return read
    .selectFrom('user_groups')
    .where('org_id', '=', like.orgId)
    .where((eb) => eb.or([eb('id', '=', like.id), eb('name_key', '=', like.nameKey), eb('is_system', '=', 1)]))
    .selectAll()
    .execute();
}

/** Returns the groups of one user. */
export function selectGroupsOf(read: Reader, orgId: string, userId: string) {
  return activeGroups(read, orgId)
    .innerJoin('group_members as m', 'm.group_id', 'user_groups.id')
    .where('m.user_id', '=', userId)
    .orderBy('user_groups.id')
    .select(['user_groups.id as _id', 'user_groups.name', 'user_groups.type'])
    .execute();
}

/** Filter of the group list. */
interface GroupFilter {
  readonly orgId: string;
  /** Folded: see `foldCase`. */
  readonly search: string | undefined;
  /** Milliseconds since 1970, inclusive. */
  readonly createdAfterMs: number | undefined;
  readonly createdBeforeMs: number | undefined;
}

function filteredGroups(read: Reader, { orgId, search, createdAfterMs, createdBeforeMs }: GroupFilter) {
  let query = activeGroups(read, orgId);
  if (search) query = query.where(contains('user_groups.name_key', search));
  if (createdAfterMs !== undefined) query = query.where('user_groups.created_at', '>=', createdAfterMs);
  if (createdBeforeMs !== undefined) query = query.where('user_groups.created_at', '<=', createdBeforeMs);
  return query;
}

/** Returns the number of groups that match a filter. */
export async function countGroups(read: Reader, filter: GroupFilter): Promise<number> {
  const row = await filteredGroups(read, filter)
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow();
  return row.total;
}

/** One page of groups in order of creation, each with the number of its members. */
export function selectGroupPage(
  read: Reader,
  filter: GroupFilter,
  { offset, limit }: { readonly offset: number; readonly limit: number },
): Promise<(StoredGroup & { readonly userCount: number })[]> {
  return filteredGroups(read, filter)
    .orderBy('user_groups.id')
    .limit(limit)
    .offset(offset)
    .selectAll('user_groups')
    .select((eb) =>
      eb
        .selectFrom('group_members as m')
        .whereRef('m.group_id', '=', 'user_groups.id')
        .select((inner) => inner.fn.countAll<number>().as('count'))
        .$asScalar()
        .$notNull()
        .as('userCount'),
    )
    .execute();
}

/** Returns the number of members of each group, ordered by name. */
export function selectGroupSizes(read: Reader, orgId: string) {
  return activeGroups(read, orgId)
    .leftJoin('group_members as m', 'm.group_id', 'user_groups.id')
    .groupBy(['user_groups.id', 'user_groups.name'])
    .orderBy('user_groups.id')
    .select(['user_groups.name', (eb) => eb.fn.count<number>('m.user_id').as('users')])
    .execute();
}

/** Updates all columns of a group. */
export async function updateGroup(tx: Tx, group: StoredGroup): Promise<void> {
  await tx.updateTable('user_groups').set(group).where('id', '=', group.id).execute();
}
