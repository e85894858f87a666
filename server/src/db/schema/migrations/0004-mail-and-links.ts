import { sql } from 'kysely';
import type { Tx } from '../../database.ts';

/** Links that people get by mail, each good for one person, one purpose and one use. Rule: LINK-1. */
async function createLinks({ schema }: Tx): Promise<void> {
  await schema
    .createTable('one_time_links')
    .addColumn('id', 'text', (c) => c.primaryKey())
    .addColumn('hash', 'text', (c) => c.unique())
    .addColumn('org_id', 'text', (c) => c.notNull().references('organizations.id'))
    .addColumn('user_id', 'text', (c) => c.notNull().references('users.id'))
    .addColumn('purpose', 'text', (c) => c.notNull())
    .addColumn('is_returning', 'integer', (c) => c.notNull())
    .addColumn('delivery', 'text', (c) => c.notNull())
    .addColumn('created_by', 'text')
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('expires_at', 'bigint')
    .addColumn('ended_at', 'bigint')
    .addColumn('end_reason', 'text')
    .addColumn('is_current', 'integer', (c) => c.notNull())
    .execute();
  // Of each purpose a person has one link at most that counts.
  await schema
    .createIndex('links_current')
    .unique()
    .on('one_time_links')
    .columns(['user_id', 'purpose'])
    .where(sql.ref('is_current'), '=', 1)
    .execute();
  // Whatever a person has ends at once, and among the links of everybody it must not be searched for.
  await schema.createIndex('links_of_user').on('one_time_links').column('user_id').execute();
  await schema
    .createIndex('links_in_order')
    .on('one_time_links')
    .columns(['org_id', 'purpose', 'is_current', 'id'])
    .execute();
}

/** What administrators set over the API. */
async function createSettings({ schema }: Tx): Promise<void> {
  await schema
    .createTable('settings')
    .addColumn('name', 'text', (c) => c.primaryKey())
    .addColumn('content', 'text', (c) => c.notNull())
    .addColumn('updated_by', 'text', (c) => c.notNull())
    .addColumn('updated_at', 'bigint', (c) => c.notNull())
    .execute();
}

/** When somebody first signed in: `has_logged_in` can be written by hand, and must not decide what unlocks an account. */
async function addFirstSignIn(tx: Tx): Promise<void> {
  await tx.schema.alterTable('users').addColumn('signed_in_at', 'bigint').execute();
  await tx
    .updateTable('users')
    .set({ signed_in_at: (eb) => eb.ref('updated_at') })
    .where('has_logged_in', '=', 1)
    .execute();
}

/** What mail, invitations and the recovery of passwords need. */
export async function up(tx: Tx): Promise<void> {
  await createLinks(tx);
  await createSettings(tx);
  await addFirstSignIn(tx);
}
