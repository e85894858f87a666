import { sql } from 'kysely';
import type { Tx } from '../../database.ts';

/** From where people sign in, and how many wrong one-time codes an account has had. */
export async function up(tx: Tx): Promise<void> {
  await tx.schema
    .createTable('known_networks')
    .addColumn('user_id', 'text', (c) => c.notNull())
    .addColumn('network', 'text', (c) => c.notNull())
    .addColumn('last_at', 'bigint', (c) => c.notNull())
    .addPrimaryKeyConstraint('known_networks_pk', ['user_id', 'network'])
    .execute();
  await tx.schema.createIndex('known_networks_last').on('known_networks').column('last_at').execute();
  await tx.schema
    .createTable('wrong_codes')
    .addColumn('user_id', 'text', (c) => c.primaryKey())
    .addColumn('count', 'integer', (c) => c.notNull())
    .addColumn('ends_at', 'bigint', (c) => c.notNull())
    .execute();
  // Sessions hold addresses; one of IPv4 is a network, those of IPv6 are known from the next sign-in on.
  await sql`
    INSERT INTO known_networks (user_id, network, last_at)
    SELECT user_id, network, max(created_at) FROM sessions
    WHERE network LIKE '%.%' AND network NOT LIKE '%:%' GROUP BY user_id, network
  `.execute(tx);
}
