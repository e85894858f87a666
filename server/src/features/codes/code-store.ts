import type { Reader, Tx } from '../../db/database.ts';
import type { StoredCode } from './code.ts';

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
