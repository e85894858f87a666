import { sql } from 'kysely';
import type { Reader } from '../database.ts';

/** Names of our connections at PostgreSQL, by which it tells a server from a command. */
export const applicationNames = { server: 'latchkey', command: 'latchkey command' } as const;

/**
 * Returns whether a server has connections to this database: each has one open all the time. `null` where the database
 * does not tell, as other engines that speak its protocol may not. Rule: FIT-108.
 */
export async function hasServers(read: Reader): Promise<boolean | null> {
  try {
    const { rows } = await sql`
      select 1 from pg_stat_activity
      where datname = current_database() and application_name = ${applicationNames.server} limit 1
    `.execute(read);
    return rows.length > 0;
  } catch {
    return null;
  }
}
