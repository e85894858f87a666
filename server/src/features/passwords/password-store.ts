import { sql } from 'kysely';
import type { Reader, Tx } from '../../db/database.ts';

/**
 * Returns the password hash that a user may sign in with; `null` without one, or once user or organization is deleted.
 */
export async function selectPasswordHash(read: Reader, userId: string): Promise<string | null> {
  const row = await read
    .selectFrom('password_credentials as p')
    .innerJoin('users as u', 'u.id', 'p.user_id')
    .innerJoin('organizations as o', 'o.id', 'u.org_id')
    .where('p.user_id', '=', userId)
    .where('u.is_deleted', '=', 0)
    .where('o.is_deleted', '=', 0)
    .select('p.password_hash')
    .executeTakeFirst();
  return row?.password_hash ?? null;
}

/** The names and addresses that a user's password should not be made of: of the user and of the organization. */
export async function selectNames(read: Reader, userId: string): Promise<readonly (string | null)[]> {
  const row = await read
    .selectFrom('users as u')
    .innerJoin('organizations as o', 'o.id', 'u.org_id')
    .where('u.id', '=', userId)
    .select(['u.full_name', 'u.email', 'o.registered_name', 'o.short_name', 'o.domain'])
    .executeTakeFirst();
  return row ? Object.values(row) : [];
}

/** Deletes a user's password. */
export async function deletePassword(tx: Tx, userId: string): Promise<void> {
  await tx.deleteFrom('password_credentials').where('user_id', '=', userId).execute();
}

/** Sets a user's password. */
export async function upsertPassword(
  tx: Tx,
  { userId, passwordHash, nowMs }: { readonly userId: string; readonly passwordHash: string; readonly nowMs: number },
): Promise<void> {
  await tx
    .insertInto('password_credentials')
    .values({ user_id: userId, password_hash: passwordHash, updated_at: nowMs })
    .onConflict((oc) => oc.column('user_id').doUpdateSet({ password_hash: passwordHash, updated_at: nowMs }))
    .execute();
}

/** Returns whether a user has a password. */
export async function selectHasPassword(read: Reader, userId: string): Promise<boolean> {
  const passwords = read.selectFrom('password_credentials').where('user_id', '=', userId).select('user_id');
  return (await passwords.executeTakeFirst()) !== undefined;
}

/** `$argon2id$v=19$m=65536,t=4,p=1$`: this many characters contain the cost of most hashes. */
const costLength = 31;

/** Of all passwords, at least one hash of each cost that there is. */
export async function selectHashesOfEachCost(read: Reader): Promise<string[]> {
  const rows = await read
    .selectFrom('password_credentials')
    .groupBy(sql`substr(password_hash, 1, ${sql.lit(costLength)})`)
    .select((eb) => eb.fn.min('password_hash').as('passwordHash'))
    .execute();
  return rows.map(({ passwordHash }) => passwordHash);
}
