import { sql } from 'kysely';
import type { Tx } from '../../database.ts';

/** How a session was signed in to, and the sealed answer of an exchange of its refresh token. */
export async function up(tx: Tx): Promise<void> {
  const { schema } = tx;
  await schema.alterTable('sessions').addColumn('methods', 'text').execute();
  await schema.alterTable('sign_in_progress').addColumn('methods', 'text').execute();
  await schema.alterTable('session_tokens').addColumn('successor', 'text').execute();
  await schema
    .createIndex('session_tokens_successor')
    .on('session_tokens')
    .column('rotated_at')
    .where(sql.ref('successor'), 'is not', null)
    .execute();
}
