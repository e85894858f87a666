import type { Tx } from '../../database.ts';

/** What several nodes have to know of each other. */
export async function up({ schema }: Tx): Promise<void> {
  await schema
    .createTable('limit_counts')
    .addColumn('key', 'text', (c) => c.primaryKey())
    .addColumn('count', 'integer', (c) => c.notNull())
    .addColumn('last_at', 'bigint', (c) => c.notNull())
    .addColumn('earlier_at', 'bigint', (c) => c.notNull())
    .addColumn('until_at', 'bigint', (c) => c.notNull())
    .execute();
  await schema
    .createTable('jobs')
    .addColumn('name', 'text', (c) => c.primaryKey())
    .addColumn('due_at', 'bigint', (c) => c.notNull())
    .execute();
  await schema
    .createTable('compatible_schemas')
    .addColumn('version', 'integer', (c) => c.primaryKey())
    .addColumn('compatible_from', 'integer', (c) => c.notNull())
    .execute();
}
