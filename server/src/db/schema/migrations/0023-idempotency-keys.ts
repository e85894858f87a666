import type { Tx } from '../../database.ts';

/** Responses to requests with an `Idempotency-Key`, without secrets, for a day. */
export async function up({ schema }: Tx): Promise<void> {
  await schema
    .createTable('idempotency_keys')
    .addColumn('user_id', 'text', (c) => c.notNull())
    .addColumn('key_hash', 'text', (c) => c.notNull())
    .addColumn('request_hash', 'text', (c) => c.notNull())
    .addColumn('response', 'text', (c) => c.notNull())
    .addColumn('bytes', 'integer', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('idempotency_keys_pk', ['user_id', 'key_hash'])
    .execute();
  // What a user holds is counted with each new key, without reading the responses.
  await schema
    .createIndex('idempotency_keys_held')
    .on('idempotency_keys')
    .columns(['user_id', 'created_at', 'bytes'])
    .execute();
  await schema.createIndex('idempotency_keys_created').on('idempotency_keys').column('created_at').execute();
}
