import { sql } from 'kysely';
import type { Tx } from '../../database.ts';

/**
 * When a user last signed in by an identity, and when it was unlinked. A link of an earlier release counts as used when
 * it was made: its user came back from the provider then. Rules: FIT-7, FIT-8.
 */
export async function up(tx: Tx): Promise<void> {
  const { schema } = tx;
  await schema.alterTable('external_identities').addColumn('signed_in_at', 'bigint').execute();
  await schema.alterTable('external_identities').addColumn('unlinked_at', 'bigint').execute();
  await schema.alterTable('sign_in_tickets').addColumn('issuer', 'text').execute();
  await schema.alterTable('sign_in_tickets').addColumn('subject', 'text').execute();
  await sql`update external_identities set signed_in_at = created_at`.execute(tx);
}
