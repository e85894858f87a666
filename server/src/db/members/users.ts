import { sql } from 'kysely';
import type { Reader } from '../database.ts';

/** The last verified address of a user, which is the one that others get: the present one may belong to anyone. Rule: ADDRESS-15. */
export function verifiedEmail(users: 'users' | 'u') {
  const [recovery, email] = [sql.ref<string | null>(`${users}.recovery_email`), sql.ref<string>(`${users}.email`)];
  return sql<string>`coalesce(${recovery}, ${email})`;
}

/** A user, with the fields that all features use. */
export interface User {
  readonly id: string;
  readonly orgId: string;
  readonly email: string;
  /** The last verified one, which `email` may not be. */
  readonly verifiedEmail: string;
  readonly fullName: string;
}

function activeUsers(read: Reader) {
  return read
    .selectFrom('users')
    .where('is_deleted', '=', 0)
    .select(['id', 'org_id as orgId', 'email', 'full_name as fullName'])
    .select(verifiedEmail('users').as('verifiedEmail'));
}

/** Returns an active user; `undefined` for a deleted or unknown id. */
export function selectUserById(read: Reader, id: string): Promise<User | undefined> {
  return activeUsers(read).where('id', '=', id).executeTakeFirst();
}

/** Returns the active user with this normalized address. */
export function selectUserByEmail(read: Reader, orgId: string, email: string): Promise<User | undefined> {
  return activeUsers(read).where('org_id', '=', orgId).where('email', '=', email).executeTakeFirst();
}

/** Returns all active users of an organization, in order of creation. */
export function selectUsersByIds(read: Reader, orgId: string): Promise<User[]> {
  return activeUsers(read).where('org_id', '=', orgId).orderBy('id').execute();
}

/** Returns the number of active users of an organization. */
export async function countActiveUsers(read: Reader, orgId: string): Promise<number> {
  const { count } = await read
    .selectFrom('users')
    .where('org_id', '=', orgId)
    .where('is_deleted', '=', 0)
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  return count;
}

/** Returns the users with some ids, deleted ones included. */
export async function selectKnownUsers(
  read: Reader,
  ids: readonly string[],
): Promise<readonly { readonly id: string; readonly isDeleted: boolean }[]> {
  const rows = await read
    .selectFrom('users')
    .where('id', 'in', ids)
    .select(['id', 'is_deleted as isDeleted'])
    .execute();
  return rows.map(({ id, isDeleted }) => ({ id, isDeleted: isDeleted === 1 }));
}

/** The names of users, deleted or not, by their ids: full name and address. */
export async function selectNames(read: Reader, ids: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const rows = await read.selectFrom('users').where('id', 'in', ids).select(['id', 'full_name', 'email']).execute();
  return new Map(rows.map(({ id, full_name, email }) => [id, `${full_name} (${email})`]));
}
