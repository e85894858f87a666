import type { Tx } from '../../database.ts';

/** How far events have got on each way out, and those that were set aside there. */
export async function up({ schema }: Tx): Promise<void> {
  await schema
    .createTable('relays')
    .addColumn('name', 'text', (c) => c.primaryKey())
    .addColumn('position', 'bigint', (c) => c.notNull())
    .addColumn('holder', 'text')
    .addColumn('held_until', 'bigint', (c) => c.notNull())
    .addColumn('attempts', 'integer', (c) => c.notNull())
    .addColumn('refusals', 'integer', (c) => c.notNull())
    .addColumn('next_try_at', 'bigint')
    .addColumn('failing_since', 'bigint')
    .addColumn('last_error', 'text')
    .addColumn('delivered_at', 'bigint')
    .execute();
  await schema
    .createTable('dead_letters')
    .addColumn('id', 'text', (c) => c.primaryKey())
    .addColumn('relay', 'text', (c) => c.notNull())
    .addColumn('sequence', 'bigint', (c) => c.notNull())
    .addColumn('attempts', 'integer', (c) => c.notNull())
    .addColumn('last_error', 'text')
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('requeued_at', 'bigint')
    .execute();
  await schema.createIndex('dead_letters_relay').on('dead_letters').columns(['relay', 'sequence']).unique().execute();
}
