import { type CreateTableBuilder, type SchemaModule, sql } from 'kysely';
import type { Tx } from '../../database.ts';

function createTable(
  schema: SchemaModule,
  name: string,
  build: (t: CreateTableBuilder<string>) => CreateTableBuilder<string>,
) {
  return build(schema.createTable(name)).execute();
}

function timestamps(t: CreateTableBuilder<string>): CreateTableBuilder<string> {
  return t.addColumn('created_at', 'bigint', (c) => c.notNull()).addColumn('updated_at', 'bigint', (c) => c.notNull());
}

async function createOrganizations(schema: SchemaModule): Promise<void> {
  await createTable(schema, 'organizations', (t) =>
    timestamps(t)
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('singleton', 'integer', (c) => c.notNull().unique())
      .addColumn('slug', 'text', (c) => c.notNull().unique())
      .addColumn('account_type', 'text', (c) => c.notNull())
      .addColumn('registered_name', 'text')
      .addColumn('short_name', 'text')
      .addColumn('domain', 'text', (c) => c.notNull())
      .addColumn('contact_email', 'text', (c) => c.notNull())
      .addColumn('phone_number', 'text')
      .addColumn('permanent_address', 'text')
      .addColumn('onboarding_status', 'text', (c) => c.notNull())
      .addColumn('is_deleted', 'integer', (c) => c.notNull())
      .addColumn('deleted_by', 'text'),
  );
  await createTable(schema, 'auth_configs', (t) =>
    t
      .addColumn('org_id', 'text', (c) => c.primaryKey().references('organizations.id'))
      .addColumn('steps', 'text', (c) => c.notNull())
      .addColumn('updated_at', 'bigint', (c) => c.notNull()),
  );
}

async function createUsers(schema: SchemaModule): Promise<void> {
  await createTable(schema, 'users', (t) =>
    timestamps(t)
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('org_id', 'text', (c) => c.notNull().references('organizations.id'))
      .addColumn('slug', 'text', (c) => c.notNull().unique())
      .addColumn('email', 'text', (c) => c.notNull())
      .addColumn('full_name', 'text', (c) => c.notNull())
      .addColumn('first_name', 'text')
      .addColumn('middle_name', 'text')
      .addColumn('last_name', 'text')
      .addColumn('mobile', 'text')
      .addColumn('designation', 'text')
      .addColumn('address', 'text')
      .addColumn('has_logged_in', 'integer', (c) => c.notNull())
      .addColumn('is_deleted', 'integer', (c) => c.notNull())
      .addColumn('deleted_by', 'text')
      .addUniqueConstraint('users_email_unique', ['org_id', 'email']),
  );
  await createTable(schema, 'password_credentials', (t) =>
    t
      .addColumn('user_id', 'text', (c) => c.primaryKey().references('users.id'))
      .addColumn('password_hash', 'text', (c) => c.notNull())
      .addColumn('updated_at', 'bigint', (c) => c.notNull()),
  );
}

async function createGroups(schema: SchemaModule): Promise<void> {
  await createTable(schema, 'user_groups', (t) =>
    timestamps(t)
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('org_id', 'text', (c) => c.notNull().references('organizations.id'))
      .addColumn('slug', 'text', (c) => c.notNull().unique())
      .addColumn('name', 'text', (c) => c.notNull())
      .addColumn('name_key', 'text', (c) => c.notNull())
      .addColumn('type', 'text', (c) => c.notNull())
      .addColumn('is_system', 'integer', (c) => c.notNull())
      .addColumn('is_deleted', 'integer', (c) => c.notNull()),
  );
  await schema
    .createIndex('user_groups_name_unique')
    .unique()
    .on('user_groups')
    .columns(['org_id', 'name_key'])
    .where(sql.ref('is_deleted'), '=', 0)
    .execute();
  await createTable(schema, 'group_members', (t) =>
    t
      .addColumn('group_id', 'text', (c) => c.notNull().references('user_groups.id'))
      .addColumn('user_id', 'text', (c) => c.notNull().references('users.id'))
      .addPrimaryKeyConstraint('group_members_pk', ['group_id', 'user_id']),
  );
  await schema.createIndex('group_members_user').on('group_members').column('user_id').execute();
}

async function createTokens(schema: SchemaModule): Promise<void> {
  await createTable(schema, 'personal_access_tokens', (t) =>
    t
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('hash', 'text', (c) => c.notNull().unique())
      .addColumn('org_id', 'text', (c) => c.notNull().references('organizations.id'))
      .addColumn('user_id', 'text', (c) => c.notNull().references('users.id'))
      .addColumn('name', 'text', (c) => c.notNull())
      .addColumn('scopes', 'text', (c) => c.notNull())
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addColumn('expires_at', 'bigint')
      .addColumn('last_used_at', 'bigint')
      .addColumn('parent_id', 'text')
      .addColumn('revoked_at', 'bigint')
      .addColumn('revoked_by', 'text')
      .addColumn('revoke_reason', 'text'),
  );
  const index = (name: string, columns: string[]) =>
    schema.createIndex(name).on('personal_access_tokens').columns(columns).execute();
  await index('pat_owner', ['user_id', 'id']);
  await index('pat_parent', ['parent_id']);
  await index('pat_expiry', ['expires_at']);
  await index('pat_revocation', ['revoked_at']);
  // Holds all that the administrator's list filters and counts by, so that a far page doesn't read the rows before it.
  await index('pat_list', ['org_id', 'id', 'revoked_at', 'expires_at']);
}

async function createSessions(schema: SchemaModule): Promise<void> {
  await createTable(schema, 'sessions', (t) =>
    t
      .addColumn('id', 'text', (c) => c.primaryKey())
      .addColumn('org_id', 'text', (c) => c.notNull().references('organizations.id'))
      .addColumn('user_id', 'text', (c) => c.notNull().references('users.id'))
      .addColumn('created_at', 'bigint', (c) => c.notNull())
      .addColumn('ended_at', 'bigint')
      .addColumn('end_reason', 'text'),
  );
  await schema.createIndex('sessions_user').on('sessions').column('user_id').execute();
  await createTable(schema, 'session_tokens', (t) =>
    t
      .addColumn('hash', 'text', (c) => c.primaryKey())
      .addColumn('session_id', 'text', (c) => c.notNull().references('sessions.id'))
      .addColumn('kind', 'text', (c) => c.notNull())
      .addColumn('expires_at', 'bigint', (c) => c.notNull())
      .addColumn('rotated_at', 'bigint'),
  );
  await schema.createIndex('session_tokens_session').on('session_tokens').column('session_id').execute();
  await schema.createIndex('session_tokens_expiry').on('session_tokens').column('expires_at').execute();
}

async function createLogs(schema: SchemaModule): Promise<void> {
  await createTable(schema, 'counters', (t) =>
    t.addColumn('name', 'text', (c) => c.primaryKey()).addColumn('value', 'bigint', (c) => c.notNull()),
  );
  await createTable(schema, 'outbox', (t) =>
    t
      .addColumn('sequence', 'bigint', (c) => c.primaryKey())
      .addColumn('id', 'text', (c) => c.notNull().unique())
      .addColumn('org_id', 'text', (c) => c.notNull())
      .addColumn('event_type', 'text', (c) => c.notNull())
      .addColumn('occurred_at', 'bigint', (c) => c.notNull())
      .addColumn('payload', 'text', (c) => c.notNull()),
  );
  await createTable(schema, 'audit_log', (t) =>
    t
      .addColumn('sequence', 'bigint', (c) => c.primaryKey())
      .addColumn('id', 'text', (c) => c.notNull().unique())
      .addColumn('occurred_at', 'bigint', (c) => c.notNull())
      .addColumn('org_id', 'text')
      .addColumn('action', 'text', (c) => c.notNull())
      .addColumn('actor_user_id', 'text')
      .addColumn('actor_token_id', 'text')
      .addColumn('subject_id', 'text')
      .addColumn('network', 'text', (c) => c.notNull())
      .addColumn('request_id', 'text', (c) => c.notNull())
      .addColumn('details', 'text', (c) => c.notNull()),
  );
}

/** The tables of the first release. */
export async function up({ schema }: Tx): Promise<void> {
  await createOrganizations(schema);
  await createUsers(schema);
  await createGroups(schema);
  await createTokens(schema);
  await createSessions(schema);
  await createLogs(schema);
}
