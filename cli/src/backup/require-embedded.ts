import type { Config } from '../../../server/src/config/config.ts';
import { CommandError } from '../failures.ts';

/**
 * Rejects commands for the embedded store where the store is PostgreSQL, unless a data directory was named.
 * @param instead the command to run in place of this one
 */
export function requireEmbedded({ databaseUrl }: Config, dataDir: string | null, instead: string): void {
  if (databaseUrl === null || dataDir !== null) return;
  throw new CommandError('refused', `DATABASE_URL is set, and PostgreSQL has its own tool for this: ${instead}`);
}
