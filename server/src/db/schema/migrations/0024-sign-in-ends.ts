import type { Tx } from '../../database.ts';

/** When all that a user had proved ended last, for who is at the provider of single sign-on meanwhile. Rule: AUTH-74. */
export async function up({ schema }: Tx): Promise<void> {
  await schema
    .createTable('sign_in_ends')
    .addColumn('user_id', 'text', (c) => c.primaryKey())
    .addColumn('ended_at', 'bigint', (c) => c.notNull())
    .execute();
}
