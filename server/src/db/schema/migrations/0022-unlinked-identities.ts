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
  // A user keeps any number of unlinked identities at an issuer, and one that is linked.
  await schema.dropIndex('external_identities_user').execute();
  await sql`create unique index external_identities_linked on external_identities (user_id, issuer)
    where unlinked_at is null`.execute(tx);
  await schema.createIndex('external_identities_user').on('external_identities').column('user_id').execute();
  await sql`update external_identities set signed_in_at = created_at`.execute(tx);
}
