import type { Reader, Tx } from '../../db/database.ts';
import type { NewRow } from '../../db/schema/tables.ts';

/** Returns the picture of a user, or the logo of an organization; `null` when there is none. */
export async function selectPicture(read: Reader, ownerId: string): Promise<Buffer | null> {
  const row = await read.selectFrom('pictures').where('owner_id', '=', ownerId).select('content').executeTakeFirst();
  return row?.content ? Buffer.from(row.content, 'base64') : null;
}

/** Stores a picture in place of the one before. */
export async function upsertPicture(tx: Tx, picture: NewRow<'pictures'>): Promise<void> {
  const { content, mime_type, updated_at } = picture;
  await tx
    .insertInto('pictures')
    .values(picture)
    .onConflict((oc) => oc.column('owner_id').doUpdateSet({ content, mime_type, updated_at }))
    .execute();
}

/**
 * Takes a picture away and keeps its record. Rule: PICTURE-4.
 * @returns whether there was one
 */
export async function clearPicture(tx: Tx, ownerId: string, nowMs: number): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('pictures')
    .set({ content: null, mime_type: null, updated_at: nowMs })
    .where('owner_id', '=', ownerId)
    .where('content', 'is not', null)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}
