import type { Selectable } from 'kysely';
import type { Reader, Tx } from '../../db/database.ts';
import type { MailedCodes } from '../../db/schema/sign-in-tables.ts';
import type { StoredCode } from './code.ts';

function toCode(row: Selectable<MailedCodes>): StoredCode {
  return {
    userId: row.user_id,
    network: row.network,
    mac: row.mac,
    expiresAt: row.expires_at,
    tries: row.tries,
    otherTries: row.other_tries,
    wrong: { count: row.wrong_count, endsAt: row.wrong_ends_at },
  };
}

/** What a user has of codes, by the network that it counts for. */
export async function selectCodes(read: Reader, userId: string): Promise<StoredCode[]> {
  const rows = await read.selectFrom('mailed_codes').where('user_id', '=', userId).selectAll().execute();
  return rows.map(toCode);
}

/** Writes what a user has of codes for one network. */
export async function upsertCode(tx: Tx, code: StoredCode): Promise<void> {
  const values = {
    mac: code.mac,
    expires_at: code.expiresAt,
    tries: code.tries,
    other_tries: code.otherTries,
    wrong_count: code.wrong.count,
    wrong_ends_at: code.wrong.endsAt,
  };
  await tx
    .insertInto('mailed_codes')
    .values({ user_id: code.userId, network: code.network, ...values })
    .onConflict((oc) => oc.columns(['user_id', 'network']).doUpdateSet(values))
    .execute();
}

/** Makes every code of a user wrong. */
export async function updateUsedUp(tx: Tx, userId: string): Promise<void> {
  await tx.updateTable('mailed_codes').set({ mac: null }).where('user_id', '=', userId).execute();
}

/** Forgets the wrong codes of a user, from everywhere. */
export async function updateNoneWrong(tx: Tx, userId: string): Promise<void> {
  const none = { tries: 0, other_tries: 0, wrong_count: 0, wrong_ends_at: 0 };
  await tx.updateTable('mailed_codes').set(none).where('user_id', '=', userId).execute();
}

/**
 * Removes what is neither a code that works nor a count that holds back; returns how many rows. What nodes of earlier
 * releases left, too.
 */
export async function deleteOldCodes(tx: Tx, nowMs: number): Promise<number> {
  await tx.deleteFrom('one_time_codes').where('expires_at', '<', nowMs).execute();
  await tx.deleteFrom('wrong_codes').where('ends_at', '<', nowMs).execute();
  const { numDeletedRows } = await tx
    .deleteFrom('mailed_codes')
    .where('wrong_ends_at', '<', nowMs)
    .where('expires_at', '<', nowMs)
    .executeTakeFirst();
  return Number(numDeletedRows);
}
