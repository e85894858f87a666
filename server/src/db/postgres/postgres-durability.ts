import { type Kysely, sql } from 'kysely';
import type { Tables } from '../schema/tables.ts';

/**
 * The settings by which a PostgreSQL may lose what it has acknowledged when power fails, such as `fsync`: those that are off,
 * as a session of this service has them. Rule: STORE-19.
 */
export async function undurableSettings(read: Kysely<Tables>): Promise<readonly string[]> {
  const { rows } = await sql<{ name: string }>`select name from pg_settings where setting = 'off'
    and name in ('fsync', 'full_page_writes', 'synchronous_commit') order by name`.execute(read);
  return rows.map(({ name }) => name);
}
