import { systemClock } from '../../server/src/clock.ts';
import type { Config } from '../../server/src/config/config.ts';
import { loadConfig } from '../../server/src/config/load-config.ts';
import { holdDataDir, requireStore } from '../../server/src/db/data-dir.ts';
import type { Database } from '../../server/src/db/database.ts';
import { migrate, requireCurrentSchema } from '../../server/src/db/migrate.ts';
import { openSqlite } from '../../server/src/db/sqlite.ts';
import { idGenerator } from '../../server/src/ids.ts';
import type { Origin } from '../../server/src/origin.ts';
import type { Surroundings } from './surroundings.ts';

/** As whose work the audit log has what commands do. */
export const operator: Origin = { requestId: 'operator', network: 'local' };

/** What commands need of the server's services; the activity of this process is counted by nobody. */
export function operatorServices(db: Database) {
  return { db, clock: systemClock, newId: idGenerator(systemClock), metrics: { countActivity: () => {} } };
}

/** The configuration as the server reads it, unless `--data-dir` names another directory. Throws StartupError. */
export function operatorConfig({ environment }: Surroundings, dataDir: string | null): Config {
  if (dataDir === null) return loadConfig(environment);
  return loadConfig({ ...environment, DATA_DIR: dataDir, DATA_DIR_FILE: undefined });
}

/**
 * Opens the store that is there, beside a running server or not, and closes it after `work`. It makes and migrates
 * nothing: throws StartupError where there is no store, or one of another schema.
 */
export async function withStore<T>(
  surroundings: Surroundings,
  dataDir: string | null,
  work: (services: ReturnType<typeof operatorServices>) => Promise<T>,
): Promise<T> {
  const config = operatorConfig(surroundings, dataDir);
  requireStore(config.dataDir);
  const db = openSqlite(config.dataDir);
  try {
    await requireCurrentSchema(db);
    return await work(operatorServices(db));
  } finally {
    await db.close();
  }
}

/** Brings the store to this release's schema, while no server runs on it; answers the versions before and after. Throws StartupError. */
export async function migrateStore(
  surroundings: Surroundings,
  dataDir: string | null,
): Promise<{ readonly from: number; readonly to: number }> {
  const config = operatorConfig(surroundings, dataDir);
  requireStore(config.dataDir);
  const hold = holdDataDir(config.dataDir);
  try {
    const db = openSqlite(config.dataDir);
    try {
      return await migrate(db, systemClock);
    } finally {
      await db.close();
    }
  } finally {
    hold.release();
  }
}
