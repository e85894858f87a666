import type { Reader, Tx } from '../../db/database.ts';
import type { StoredCode, WrongCodes } from './code.ts';

/** What a person has of codes; `undefined` before the first one. */
export async function selectCode(read: Reader, userId: string): Promise<StoredCode | undefined> {
  return read
    .selectFrom('one_time_codes')
    .where('user_id', '=', userId)
    .select(['user_id as userId', 'mac', 'expires_at as expiresAt', 'tries'])
    .executeTakeFirst();
}

/** Writes what a person has of codes. */
export async function upsertCode(tx: Tx, code: StoredCode): Promise<void> {
  const values = {
    mac: code.mac,
    expires_at: code.expiresAt,
    tries: code.tries,
  };
  await tx
    .insertInto('one_time_codes')
    .values({ user_id: code.userId, ...values })
    .onConflict((oc) => oc.column('user_id').doUpdateSet(values))
    .execute();
}

/** Forgets a person's codes. */
export async function deleteCode(tx: Tx, userId: string): Promise<void> {
  await tx.deleteFrom('one_time_codes').where('user_id', '=', userId).execute();
}

/** The wrong codes that an account has had. */
export function selectWrongCodes(read: Reader, userId: string): Promise<WrongCodes | undefined> {
  return read
    .selectFrom('wrong_codes')
    .where('user_id', '=', userId)
    .select(['count', 'ends_at as endsAt'])
    .executeTakeFirst();
}

/** Writes how many wrong codes an account has had. */
export async function upsertWrongCodes(tx: Tx, userId: string, { count, endsAt }: WrongCodes): Promise<void> {
  await tx
    .insertInto('wrong_codes')
    .values({ user_id: userId, count, ends_at: endsAt })
    .onConflict((oc) => oc.column('user_id').doUpdateSet({ count, ends_at: endsAt }))
    .execute();
}

/** Forgets the wrong codes of an account. */
export async function deleteWrongCodes(tx: Tx, userId: string): Promise<void> {
  await tx.deleteFrom('wrong_codes').where('user_id', '=', userId).execute();
}

/** Removes wrong codes that count no longer; returns of how many accounts. */
export async function deleteOldWrongCodes(tx: Tx, nowMs: number): Promise<number> {
  const { numDeletedRows } = await tx.deleteFrom('wrong_codes').where('ends_at', '<', nowMs).executeTakeFirst();
  return Number(numDeletedRows);
}
