import type { Tx } from '../../database.ts';

/** The signing keys that nodes have in common. */
export async function up({ schema }: Tx): Promise<void> {
  await schema
    .createTable('shared_keys')
    .addColumn('name', 'text', (c) => c.primaryKey())
    .addColumn('content', 'text', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .execute();
}
