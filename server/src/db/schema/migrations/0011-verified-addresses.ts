import { sql } from 'kysely';
import type { Tx } from '../../database.ts';

/**
 * Dates the address of every account: from the first single sign-on or the first used link of an invitation or a reset,
 * which proved it. Any other address counts as verified as it is found, from the creation of the account on, so that no
 * one is locked out; `latchkey doctor` lists those that users set themselves.
 */
async function dateAddresses(tx: Tx): Promise<void> {
  await sql`
    update users set email_verified_at = coalesce(
      (select min(i.created_at) from external_identities i where i.user_id = users.id),
      (select min(l.ended_at) from one_time_links l
        where l.user_id = users.id and l.end_reason = 'used' and l.delivery = 'sent'),
      created_at)
    where erased_at is null
  `.execute(tx);
}

/** Which addresses are verified, and links that verify one. Rules: ADDRESS-1, ADDRESS-5, ADDRESS-12. */
export async function up(tx: Tx): Promise<void> {
  await tx.schema.alterTable('users').addColumn('email_verified_at', 'bigint').execute();
  await tx.schema
    .alterTable('one_time_links')
    .addColumn('needs_password', 'integer', (c) => c.notNull().defaultTo(0))
    .execute();
  await dateAddresses(tx);
}
