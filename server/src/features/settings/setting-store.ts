import { sql } from 'kysely';
import type { Reader, Tx } from '../../db/database.ts';
import { areAdministrators } from '../../db/members/membership.ts';
import type { NewRow, Tables } from '../../db/schema/tables.ts';

type SettingName = Tables['settings']['name'];

/** The encrypted content of a setting; `null` where none is stored. */
export async function selectSetting(read: Reader, name: SettingName): Promise<string | null> {
  const row = await read.selectFrom('settings').where('name', '=', name).select('content').executeTakeFirst();
  return row?.content ?? null;
}

/** Whether those who answer for a setting are administrators: who confirmed it, or else who set it and gave its secret. */
const areMakersAdministrators = sql<0 | 1>`case when s.confirmed_by is not null
  then ${areAdministrators('s.confirmed_by', 's.confirmed_by')} else ${areAdministrators('s.updated_by', 's.secret_by')} end`;

/** Who set a stored setting, gave its secret and confirmed it; `undefined` where none is stored. */
export function selectSettingMakers(read: Reader, name: SettingName) {
  return read
    .selectFrom('settings as s')
    .where('s.name', '=', name)
    .select(['s.updated_by as updatedBy', 's.updated_at as updatedAt'])
    .select(['s.secret_by as secretBy', 's.confirmed_by as confirmedBy'])
    .select(areMakersAdministrators.as('areMakersAdministrators'))
    .executeTakeFirst();
}

/** Notes that an administrator looked at a setting; answers whether there is one. */
export async function updateConfirmed(tx: Tx, name: SettingName, confirmedBy: string): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('settings')
    .set({ confirmed_by: confirmedBy })
    .where('name', '=', name)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
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

/** Deletes a setting; returns whether it existed. */
export async function deleteSetting(tx: Tx, name: SettingName): Promise<boolean> {
  const { numDeletedRows } = await tx.deleteFrom('settings').where('name', '=', name).executeTakeFirst();
  return numDeletedRows > 0n;
}
