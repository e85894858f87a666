import { batchRows } from '../../db/batches.ts';
import type { Reader, Tx } from '../../db/database.ts';
import { deleteResponsesNaming } from '../../db/idempotency-store.ts';
import { erasedUser } from '../../db/members/erased-user.ts';
import { ownTables } from '../../db/members/erasure-traces.ts';
import { contains } from '../../db/search.ts';

/** Selects the columns that decide whether a user can be erased. */
export function selectErasable(read: Reader, id: string) {
  return read
    .selectFrom('users')
    .where('id', '=', id)
    .select(['id', 'slug', 'org_id as orgId', 'is_deleted as isDeleted', 'erased_at as erasedAt'])
    .executeTakeFirst();
}

/** Takes everything from a user but the row itself, with its id. */
export async function updateErased(tx: Tx, id: string, nowMs: number): Promise<void> {
  await tx.updateTable('users').set(erasedUser(id, nowMs)).where('id', '=', id).execute();
}

/** Removes a user's means of signing in, the picture, and the networks of sessions. */
export async function deleteOwnRows(tx: Tx, userId: string): Promise<void> {
  for (const table of ownTables) await tx.deleteFrom(table).where('user_id', '=', userId).execute();
  await deleteResponsesNaming(tx, userId);
  await tx.deleteFrom('pictures').where('owner_id', '=', userId).execute();
  await tx
    .deleteFrom('session_tokens')
    .where('session_id', 'in', (eb) => eb.selectFrom('sessions').where('user_id', '=', userId).select('id'))
    .execute();
  await tx.deleteFrom('sessions').where('user_id', '=', userId).execute();
}

/** Erases names and revocation reasons of a user's tokens. */
export async function updateTokensErased(tx: Tx, userId: string): Promise<void> {
  await tx
    .updateTable('personal_access_tokens')
    .set({ name: 'Erased', name_key: 'erased', revoke_reason: 'Owner was erased' })
    .where('user_id', '=', userId)
    .execute();
}

/** Erases the events about a user except types and ids; returns their number. */
export async function updateEventsErased(
  tx: Tx,
  { userId, orgId }: { readonly userId: string; readonly orgId: string },
): Promise<number> {
  const { numUpdatedRows } = await tx
    .updateTable('outbox')
    .set({ payload: JSON.stringify({ orgId, userId }) })
    .where('org_id', '=', orgId)
    .where('event_type', 'in', ['userAdded', 'userUpdated', 'userDeleted'])
    .where(contains('payload', JSON.stringify(userId)))
    .executeTakeFirst();
  return Number(numUpdatedRows);
}

/** Those of some users who are here and whose data is not erased. */
export async function selectNotErased(read: Reader, ids: readonly string[]): Promise<readonly string[]> {
  const found: string[] = [];
  for (let start = 0; start < ids.length; start += batchRows) {
    const some = ids.slice(start, start + batchRows);
    const rows = await read
      .selectFrom('users')
      .where('id', 'in', some)
      .where('erased_at', 'is', null)
      .select('id')
      .execute();
    found.push(...rows.map(({ id }) => id));
  }
  return found;
}
