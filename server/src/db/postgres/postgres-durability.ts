import { type Kysely, sql } from 'kysely';
import type { Tables } from '../schema/tables.ts';

/**
 * Returns the settings by which a PostgreSQL may lose acknowledged commits when power fails, such as `fsync`: those
 * that are off in a session of this service. Rule: STORE-19.
 */
export async function undurableSettings(read: Kysely<Tables>): Promise<readonly string[]> {
  const { rows } = await sql<{ name: string }>`select name from pg_settings where setting = 'off'
    and name in ('fsync', 'full_page_writes', 'synchronous_commit') order by name`.execute(read);
  return rows.map(({ name }) => name);
}
