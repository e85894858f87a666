import type { ExpressionBuilder } from 'kysely';
import { cachedQuery, type Placeholders, type Reader, type Tx } from '../../db/database.ts';
import { type UserSearch, userMatches } from '../../db/members/user-search.ts';
import { verifiedEmail } from '../../db/members/users.ts';
import type { Tables } from '../../db/schema/tables.ts';
import { type StoredUser, toUserRecord } from './user.ts';

/** The record of one active user. */
export const selectActiveUserRecord = cachedQuery(
  (read, { id }: Placeholders<{ id: string }>) =>
    read.selectFrom('users').where('id', '=', id).where('is_deleted', '=', 0).selectAll(),
  toUserRecord,
);

/** All active users of an organization, in order of creation: for `Database.batches`. */
export function selectActiveUsers(read: Reader, orgId: string) {
  return read.selectFrom('users').where('org_id', '=', orgId).where('is_deleted', '=', 0).orderBy('id').selectAll();
}

/** The groups of all active users, user by user in order of creation: for `Database.batches`. */
export function selectMemberships(read: Reader, orgId: string) {
  return read
    .selectFrom('users as u')
    .leftJoin('group_members as m', 'm.user_id', 'u.id')
    .leftJoin('user_groups as g', (join) => join.onRef('g.id', '=', 'm.group_id').on('g.is_deleted', '=', 0))
    .where('u.org_id', '=', orgId)
    .where('u.is_deleted', '=', 0)
    .orderBy('u.id')
    .orderBy('g.id')
    .select(['u.id', 'u.org_id as orgId', 'u.full_name as fullName', 'u.has_logged_in as hasLoggedIn'])
    .select(verifiedEmail('u').as('email'))
    .select(['g.name as groupName', 'g.type as groupType']);
}

/** Filter of the user list. */
interface UserFilter {
  readonly orgId: string;
  readonly search: UserSearch | undefined;
  readonly hasLoggedIn: boolean | undefined;
  /** Members of any of these groups. */
  readonly groupIds: readonly string[] | undefined;
}

/** Asks the groups once rather than each user: with a hundred groups that is the difference of seconds. */
function isMemberOf(eb: ExpressionBuilder<Tables, 'users'>, groupIds: readonly string[]) {
  return eb(
    'users.id',
    'in',
    eb
      .selectFrom('group_members as m')
      .innerJoin('user_groups as g', 'g.id', 'm.group_id')
      .where('g.is_deleted', '=', 0)
      .where('m.group_id', 'in', groupIds)
      .select('m.user_id'),
  );
}

function filtered(read: Reader, { orgId, search, hasLoggedIn, groupIds }: UserFilter) {
  let query = read.selectFrom('users').where('org_id', '=', orgId).where('is_deleted', '=', 0);
  if (search) query = query.where((eb) => eb.or(userMatches('users', search)));
  if (hasLoggedIn !== undefined) query = query.where('has_logged_in', '=', hasLoggedIn ? 1 : 0);
  if (groupIds) query = query.where((eb) => isMemberOf(eb, groupIds));
  return query;
}

/** Returns the number of users that match a filter. */
export async function countUsers(read: Reader, filter: UserFilter): Promise<number> {
  const row = await filtered(read, filter)
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow();
  return row.total;
}

const sortColumns = { fullName: 'name_key', email: 'email', createdAt: 'created_at' } as const;

/** One page of users. The page is cut on an index, and only its rows are read. */
export function selectUserPage(
  read: Reader,
  filter: UserFilter,
  page: {
    readonly offset: number;
    readonly limit: number;
    readonly sortBy: keyof typeof sortColumns;
    readonly sortOrder: 'asc' | 'desc';
  },
): Promise<StoredUser[]> {
  const column = sortColumns[page.sortBy];
  const ids = filtered(read, filter)
    .orderBy(column, page.sortOrder)
    .orderBy('id', page.sortOrder)
    .limit(page.limit)
    .offset(page.offset)
    .select('id');
  return read
    .selectFrom('users')
    .where('id', 'in', ids)
    .orderBy(column, page.sortOrder)
    .orderBy('id', page.sortOrder)
    .selectAll()
    .execute();
}

/** Returns the groups that some users are in, in the order in which the groups were made. */
export async function selectGroupsOf(read: Reader, userIds: readonly string[]) {
  if (userIds.length === 0) return [];
  return read
    .selectFrom('group_members as m')
    .innerJoin('user_groups as g', 'g.id', 'm.group_id')
    .where('m.user_id', 'in', userIds)
    .where('g.is_deleted', '=', 0)
    .orderBy('g.id')
    .select(['m.user_id as userId', 'g.id as _id', 'g.name', 'g.type'])
    .execute();
}

/** The active users among some ids, in no order. */
export function selectUserRecords(read: Reader, orgId: string, ids: readonly string[]) {
  return read
    .selectFrom('users')
    .where('id', 'in', ids)
    .where('org_id', '=', orgId)
    .where('is_deleted', '=', 0)
    .select(['id as _id', 'full_name as fullName', verifiedEmail('users').as('email'), 'org_id as orgId'])
    .execute();
}

/** Selects the user who has this address verified in the organization of this system, deleted or not. Rule: ADDRESS-15. */
export function selectUsersByEmail(read: Reader, email: string) {
  return (
    read
      .selectFrom('users')
      // The organization in each half: only then each is looked up in an index of its own.
      .where((eb) => {
        const isHere = eb('org_id', 'in', eb.selectFrom('organizations').select('organizations.id'));
        return eb.or([
          eb.and([isHere, eb('email', '=', email), eb('recovery_email', 'is', null)]),
          eb.and([isHere, eb('recovery_email', '=', email)]),
        ]);
      })
      .select(['id', verifiedEmail('users').as('email'), 'full_name as fullName', 'is_deleted as isDeleted'])
      .execute()
  );
}

/**
 * Returns the user who blocks giving an address to another: the one who has it, deleted or not, or who gets recovery
 * mail there.
 * @param forId of the user who is to have it; `null` for a new user
 */
export function selectOwnerOfEmail(
  read: Reader,
  { orgId, email, forId }: { readonly orgId: string; readonly email: string; readonly forId: string | null },
): Promise<StoredUser | undefined> {
  // The organization in each half: only then each is looked up in an index of its own.
  const holders = read
    .selectFrom('users')
    .where((eb) => eb.or([eb.and({ org_id: orgId, email }), eb.and({ org_id: orgId, recovery_email: email })]))
    .selectAll();
  return (forId === null ? holders : holders.where('id', '!=', forId)).executeTakeFirst();
}

/** Returns all users who have one of some addresses, deleted or not, or get recovery mail there. */
export function selectOwnersOfEmails(read: Reader, orgId: string, emails: readonly string[]): Promise<StoredUser[]> {
  // The organization in each half, as above.
  return read
    .selectFrom('users')
    .where((eb) =>
      eb.or([
        eb('org_id', '=', orgId).and('email', 'in', emails),
        eb('org_id', '=', orgId).and('recovery_email', 'in', emails),
      ]),
    )
    .selectAll()
    .execute();
}

/** A user by id, deleted or not, wherever it belongs. */
export function selectAnyUserById(read: Reader, id: string): Promise<StoredUser | undefined> {
  return read.selectFrom('users').where('id', '=', id).selectAll().executeTakeFirst();
}

/** The users among some ids, deleted or not, wherever they belong. */
export async function selectAnyUsersByIds(read: Reader, ids: readonly string[]): Promise<StoredUser[]> {
  if (ids.length === 0) return [];
  return read.selectFrom('users').where('id', 'in', ids).selectAll().execute();
}

/** An active user by id, wherever it belongs. */
export function selectUserById(read: Reader, id: string): Promise<StoredUser | undefined> {
  return read.selectFrom('users').where('id', '=', id).where('is_deleted', '=', 0).selectAll().executeTakeFirst();
}

/** Adds users, as many as one statement takes. */
export async function insertUsers(tx: Tx, users: readonly StoredUser[]): Promise<void> {
  await tx.insertInto('users').values(users).execute();
}

/** Updates all columns of a user. */
export async function updateUser(tx: Tx, user: StoredUser): Promise<void> {
  await tx.updateTable('users').set(user).where('id', '=', user.id).execute();
}
