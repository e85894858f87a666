import type { Tx } from '../../database.ts';

/**
 * When all that a user had proved ended last, for who is at the provider of single sign-on meanwhile; and who set the
 * sign-in steps, as far as it is known. Rules: AUTH-74, LEAVER-10.
 */
export async function up({ schema }: Tx): Promise<void> {
  await schema
    .createTable('sign_in_ends')
    .addColumn('user_id', 'text', (c) => c.primaryKey())
    .addColumn('ended_at', 'bigint', (c) => c.notNull())
    .execute();
  await schema.alterTable('auth_configs').addColumn('set_by', 'text').execute();
}
