import type { Reader, Tx } from './database.ts';
import type { NewRow } from './schema/tables.ts';

/** Names a key of a user. */
export interface KeyOfUser {
  readonly userId: string;
  readonly keyHash: string;
}

/** The stored response to a key that was used after a time; `undefined`: there is none. */
export async function selectResponse(
  read: Reader,
  { userId, keyHash }: KeyOfUser,
  afterMs: number,
): Promise<{ readonly requestHash: string; readonly response: string } | undefined> {
  return read
    .selectFrom('idempotency_keys')
    .where('user_id', '=', userId)
    .where('key_hash', '=', keyHash)
    .where('created_at', '>', afterMs)
    .select(['request_hash as requestHash', 'response'])
    .executeTakeFirst();
}

/** Number and bytes of a user's stored responses, and the time of the oldest; 0 without any. */
export async function selectHeld(
  tx: Tx,
  userId: string,
): Promise<{ readonly count: number; readonly bytes: number; readonly oldestMs: number }> {
  const held = await tx
    .selectFrom('idempotency_keys')
    .where('user_id', '=', userId)
    .select(({ fn }) => [
      fn.countAll<number | string>().as('count'),
      fn.sum<number | string | null>('bytes').as('bytes'),
      fn.min<number | string | null>('created_at').as('oldestMs'),
    ])
    .executeTakeFirstOrThrow();
  return { count: Number(held.count), bytes: Number(held.bytes ?? 0), oldestMs: Number(held.oldestMs ?? 0) };
}

/** Stores a response. */
export async function insertResponse(tx: Tx, row: NewRow<'idempotency_keys'>): Promise<void> {
  await tx.insertInto('idempotency_keys').values(row).execute();
}

/** Removes the expired responses of a user, whose keys are free again. */
export async function deleteExpiredOf(tx: Tx, userId: string, untilMs: number): Promise<void> {
  await tx.deleteFrom('idempotency_keys').where('user_id', '=', userId).where('created_at', '<=', untilMs).execute();
}

/** Removes some expired responses of all users; returns how many. */
export async function deleteExpired(tx: Tx, untilMs: number, limit: number): Promise<number> {
  const oldest = await tx
    .selectFrom('idempotency_keys')
    .where('created_at', '<=', untilMs)
    .orderBy('created_at')
    .select('created_at')
    .offset(limit - 1)
    .limit(1)
    .executeTakeFirst();
  const { numDeletedRows } = await tx
    .deleteFrom('idempotency_keys')
    .where('created_at', '<=', oldest?.created_at ?? untilMs)
    .executeTakeFirst();
  return Number(numDeletedRows);
}

/** Removes the responses that name a user. */
export async function deleteResponsesNaming(tx: Tx, userId: string): Promise<void> {
  await tx.deleteFrom('idempotency_keys').where('response', 'like', `%${userId}%`).execute();
}
