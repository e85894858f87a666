import { sql } from 'kysely';
import type { Tx } from '../../database.ts';

/** Finds the links that an administrator was shown, of whom there are few, among the links of all users. */
export async function up({ schema }: Tx): Promise<void> {
  await schema
    .createIndex('links_shown')
    .on('one_time_links')
    .column('created_by')
    .where(sql.ref('delivery'), '=', 'shown')
    .execute();
}
