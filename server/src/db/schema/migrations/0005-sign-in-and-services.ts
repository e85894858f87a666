import type { Tx } from '../../database.ts';

/** How far somebody is who signs in in several steps, and the code that somebody got by mail. */
async function createSignIn({ schema }: Tx): Promise<void> {
  await schema
    .createTable('sign_in_progress')
    .addColumn('id', 'text', (c) => c.primaryKey())
    .addColumn('user_id', 'text', (c) => c.notNull().references('users.id'))
    .addColumn('steps_done', 'integer', (c) => c.notNull())
    .addColumn('config_updated_at', 'bigint', (c) => c.notNull())
    .addColumn('expires_at', 'bigint', (c) => c.notNull())
    .execute();
  await schema.createIndex('sign_in_progress_user').on('sign_in_progress').column('user_id').execute();
  await schema
    .createTable('one_time_codes')
    .addColumn('user_id', 'text', (c) => c.primaryKey().references('users.id'))
    .addColumn('mac', 'text')
    .addColumn('expires_at', 'bigint', (c) => c.notNull())
    .addColumn('tries', 'integer', (c) => c.notNull())
    .execute();
}

/** Services that get tokens of their own, and those tokens. */
async function createServiceClients({ schema }: Tx): Promise<void> {
  await schema
    .createTable('service_clients')
    .addColumn('id', 'text', (c) => c.primaryKey())
    .addColumn('org_id', 'text')
    .addColumn('name', 'text', (c) => c.notNull())
    .addColumn('secret_hash', 'text', (c) => c.notNull())
    .addColumn('scopes', 'text', (c) => c.notNull())
    .addColumn('created_by', 'text')
    .addColumn('created_by_token', 'text')
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('last_used_at', 'bigint')
    .addColumn('deleted_at', 'bigint')
    .execute();
  await schema
    .createTable('service_tokens')
    .addColumn('hash', 'text', (c) => c.primaryKey())
    .addColumn('client_id', 'text', (c) => c.notNull().references('service_clients.id'))
    .addColumn('scopes', 'text', (c) => c.notNull())
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addColumn('expires_at', 'bigint', (c) => c.notNull())
    .addColumn('revoked_at', 'bigint')
    .execute();
  await schema.createIndex('service_tokens_client').on('service_tokens').column('client_id').execute();
  await schema.createIndex('service_tokens_expiry').on('service_tokens').column('expires_at').execute();
}

/** Who people are at the provider that they sign in by, and the tickets that they come back with. */
async function createSingleSignOn({ schema }: Tx): Promise<void> {
  await schema
    .createTable('external_identities')
    .addColumn('issuer', 'text', (c) => c.notNull())
    .addColumn('subject', 'text', (c) => c.notNull())
    .addColumn('user_id', 'text', (c) => c.notNull().references('users.id'))
    .addColumn('created_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('external_identities_key', ['issuer', 'subject'])
    .execute();
  await schema
    .createIndex('external_identities_user')
    .unique()
    .on('external_identities')
    .columns(['user_id', 'issuer'])
    .execute();
  await schema
    .createTable('sign_in_tickets')
    .addColumn('hash', 'text', (c) => c.primaryKey())
    .addColumn('user_id', 'text', (c) => c.notNull().references('users.id'))
    .addColumn('sign_in_id', 'text', (c) => c.notNull())
    .addColumn('expires_at', 'bigint', (c) => c.notNull())
    .execute();
  await schema.createIndex('sign_in_tickets_user').on('sign_in_tickets').column('user_id').execute();
}

/** What signing in with codes and in several steps, and service clients, need. */
export async function up(tx: Tx): Promise<void> {
  await createSignIn(tx);
  await createSingleSignOn(tx);
  await createServiceClients(tx);
  await tx.schema.alterTable('sessions').addColumn('network', 'text').execute();
  await tx.schema.alterTable('sessions').addColumn('active_at', 'bigint').execute();
}
