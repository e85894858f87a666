import type { Reader, Tx } from '../../db/database.ts';
import type { NewRow, Tables } from '../../db/schema/tables.ts';

/** The encrypted content of a setting; `null` where none is stored. */
export async function selectSetting(read: Reader, name: Tables['settings']['name']): Promise<string | null> {
  const row = await read.selectFrom('settings').where('name', '=', name).select('content').executeTakeFirst();
  return row?.content ?? null;
}

/** Stores a setting in place of the one that is there. */
export async function upsertSetting(tx: Tx, row: NewRow<'settings'>): Promise<void> {
  const { name, ...values } = row;
  await tx
    .insertInto('settings')
    .values({ name, ...values })
    .onConflict((oc) => oc.column('name').doUpdateSet(values))
    .execute();
}

/** Removes a setting; answers whether there was one. */
export async function deleteSetting(tx: Tx, name: Tables['settings']['name']): Promise<boolean> {
  const { numDeletedRows } = await tx.deleteFrom('settings').where('name', '=', name).executeTakeFirst();
  return numDeletedRows > 0n;
}
