import { sql } from 'kysely';
import type { Tx } from '../../database.ts';

/**
 * One-time codes by the network that asked for them. Takes the place of `one_time_codes` and `wrong_codes`, which stay for
 * nodes of earlier releases.
 */
export async function up(tx: Tx): Promise<void> {
  await tx.schema
    .createTable('mailed_codes')
    .addColumn('user_id', 'text', (c) => c.notNull())
    .addColumn('network', 'text', (c) => c.notNull())
    .addColumn('mac', 'text')
    .addColumn('expires_at', 'bigint', (c) => c.notNull())
    .addColumn('tries', 'integer', (c) => c.notNull())
    .addColumn('other_tries', 'integer', (c) => c.notNull())
    .addColumn('wrong_count', 'integer', (c) => c.notNull())
    .addColumn('wrong_ends_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('mailed_codes_pk', ['user_id', 'network'])
    .execute();
  // From where a code was asked for is not known: as for strangers.
  await sql`
    INSERT INTO mailed_codes (user_id, network, mac, expires_at, tries, other_tries, wrong_count, wrong_ends_at)
    SELECT u.id, '', c.mac, coalesce(c.expires_at, 0), coalesce(c.tries, 0), coalesce(c.tries, 0),
      coalesce(w.count, 0), coalesce(w.ends_at, 0)
    FROM users u LEFT JOIN one_time_codes c ON c.user_id = u.id LEFT JOIN wrong_codes w ON w.user_id = u.id
    WHERE c.user_id IS NOT NULL OR w.user_id IS NOT NULL
  `.execute(tx);
}
