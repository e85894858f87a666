import { keptQuery, type Placeholders, type Reader, type Tx } from '../../db/database.ts';
import { type StoredUser, toUserRecord } from './user.ts';

/** The record of one active user. */
export const selectActiveUserRecord = keptQuery(
  (read, { id }: Placeholders<{ id: string }>) =>
    read.selectFrom('users').where('id', '=', id).where('is_deleted', '=', 0).selectAll(),
  toUserRecord,
);

/** All active users of an organization, in order of creation. */
export function selectActiveUsers(read: Reader, orgId: string): Promise<StoredUser[]> {
  return read
    .selectFrom('users')
    .where('org_id', '=', orgId)
    .where('is_deleted', '=', 0)
    .orderBy('id')
    .selectAll()
    .execute();
}

/** Whoever has this address in the organization, deleted or not. */
export function selectUserByEmail(read: Reader, orgId: string, email: string): Promise<StoredUser | undefined> {
  return read.selectFrom('users').where('org_id', '=', orgId).where('email', '=', email).selectAll().executeTakeFirst();
}

/** An active user by id, wherever it belongs. */
export function selectUserById(read: Reader, id: string): Promise<StoredUser | undefined> {
  return read.selectFrom('users').where('id', '=', id).where('is_deleted', '=', 0).selectAll().executeTakeFirst();
}

/** Adds a user. */
export async function insertUser(tx: Tx, user: StoredUser): Promise<void> {
  await tx.insertInto('users').values(user).execute();
}

/** Notes the first complete sign-in. */
export async function updateHasLoggedIn(tx: Tx, id: string, nowMs: number): Promise<void> {
  await tx
    .updateTable('users')
    .set({ has_logged_in: 1, updated_at: nowMs })
    .where('id', '=', id)
    .where('has_logged_in', '=', 0)
    .execute();
}
