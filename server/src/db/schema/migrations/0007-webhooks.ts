import type { Tx } from '../../database.ts';

/** Where administrators have events sent to, and each attempt to do so. */
export async function up({ schema }: Tx): Promise<void> {
  await schema
    .createTable('webhooks')
    .addColumn('id', 'text', (c) => c.primaryKey())
    .addColumn('org_id', 'text')
    .addColumn('url', 'text', (c) => c.notNull())
    .addColumn('description', 'text')
    .addColumn('events', 'text')
    .addColumn('off_reason', 'text')
    .addColumn('off_at', 'bigint')
    .addColumn('secret', 'text', (c) => c.notNull())
    .addColumn('earlier_secret', 'text')
    .addColumn('earlier_secret_until', 'bigint')
    .addColumn('created_by', 'text')
    .addColumn('created_by_token', 'text')
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('updated_at', 'bigint', (c) => c.notNull())
    .execute();
  await schema
    .createTable('webhook_attempts')
    .addColumn('id', 'text', (c) => c.primaryKey())
    .addColumn('webhook_id', 'text', (c) => c.notNull())
    .addColumn('event_id', 'text', (c) => c.notNull())
    .addColumn('event_type', 'text', (c) => c.notNull())
    .addColumn('sequence', 'bigint')
    .addColumn('attempt', 'integer', (c) => c.notNull())
    .addColumn('attempted_at', 'bigint', (c) => c.notNull())
    .addColumn('duration_ms', 'integer', (c) => c.notNull())
    .addColumn('status', 'integer')
    .addColumn('reason', 'text')
    .execute();
  await schema.createIndex('webhook_attempts_webhook').on('webhook_attempts').columns(['webhook_id', 'id']).execute();
  await schema
    .createIndex('webhook_attempts_event')
    .on('webhook_attempts')
    .columns(['webhook_id', 'event_id'])
    .execute();
  await schema.createIndex('webhook_attempts_time').on('webhook_attempts').column('attempted_at').execute();
}
