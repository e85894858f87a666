import { systemClock } from '../../server/src/base/clock.ts';
import { StartupError } from '../../server/src/base/errors.ts';
import { idGenerator } from '../../server/src/base/ids.ts';
import type { Origin } from '../../server/src/base/origin.ts';
import type { Config } from '../../server/src/config/config.ts';
import { loadConfig } from '../../server/src/config/load-config.ts';
import type { Database } from '../../server/src/db/database.ts';
import { holdDataDir, requireStore } from '../../server/src/db/files/data-dir.ts';
import { readLastStart } from '../../server/src/db/files/last-start.ts';
import { openPostgres } from '../../server/src/db/postgres/postgres.ts';
import { migrate, requireCurrentSchema } from '../../server/src/db/schema/migrate.ts';
import { openSqlite } from '../../server/src/db/sqlite/sqlite.ts';
import type { RuntimeContext } from './runtime-context.ts';

/** As whose work the audit log has what commands do. */
export const operator: Origin = { requestId: 'operator', network: 'local' };

/** Returns the services that commands need; the metrics of this process are discarded. */
export function operatorServices(db: Database) {
  return { db, clock: systemClock, newId: idGenerator(systemClock), metrics: { countActivity: () => {} } };
}

/**
 * The configuration as the server reads it, unless `--data-dir` names the directory of an embedded store, which comes
 * before DATABASE_URL, too. Throws StartupError.
 */
export function operatorConfig({ environment }: RuntimeContext, dataDir: string | null): Config {
  if (dataDir === null) return loadConfig(environment);
  return { ...loadConfig(inDirectory(environment, dataDir)), databaseUrl: null };
}

/**
 * The same for what prints links: without an address of its own in the configuration, that with which the server last
 * started counts. Rule: FIT-107.
 */
export function linkConfig(context: RuntimeContext, dataDir: string | null): Config {
  const config = operatorConfig(context, dataDir);
  const isNamed = config.baseUrl !== `http://localhost:${config.port}` || config.frontendUrl !== config.baseUrl;
  const last = isNamed ? null : readLastStart(config.dataDir);
  return last === null ? config : { ...config, ...last };
}

function inDirectory(
  environment: RuntimeContext['environment'],
  dataDir: string | null,
): RuntimeContext['environment'] {
  return dataDir === null ? environment : { ...environment, DATA_DIR: dataDir, DATA_DIR_FILE: undefined };
}

/** The same for a move from an embedded store to `databaseUrl`, which is what `to` says, or else DATABASE_URL. Throws StartupError. */
export function moveConfig(
  { environment }: RuntimeContext,
  { dataDir, to }: { readonly dataDir: string | null; readonly to: string | null },
): Config {
  const here = inDirectory(environment, dataDir);
  if (to === null) return loadConfig(here);
  try {
    return loadConfig({ ...here, DATABASE_URL: to, DATABASE_URL_FILE: undefined });
  } catch (error) {
    if (!(error instanceof StartupError) || error.variable !== 'DATABASE_URL') throw error;
    throw new StartupError(error.message.replace('DATABASE_URL', '--to'), { cause: error });
  }
}

/** Opens the store that the configuration names, and makes none. Throws StartupError. */
export async function openStore({ databaseUrl, dataDir }: Config): Promise<Database> {
  if (databaseUrl) return openPostgres(databaseUrl, null, { opening: 'use' });
  requireStore(dataDir);
  return openSqlite(dataDir);
}

/**
 * Opens the existing store, also while a server runs, and closes it after `work`. Creates and migrates nothing: throws
 * StartupError where there is no store, or one of another schema.
 */
export async function withStore<T>(
  context: RuntimeContext,
  dataDir: string | null,
  work: (services: ReturnType<typeof operatorServices>) => Promise<T>,
): Promise<T> {
  return withConfiguredStore(operatorConfig(context, dataDir), work);
}

/** The same where the configuration has been read already. */
export async function withConfiguredStore<T>(
  config: Config,
  work: (services: ReturnType<typeof operatorServices>) => Promise<T>,
): Promise<T> {
  const db = await openStore(config);
  try {
    await requireCurrentSchema(db);
    return await work(operatorServices(db));
  } finally {
    await db.close();
  }
}

/** Locks the data directory of an embedded store against servers; that of a shared store is not exclusive. */
function holdEmbedded({ databaseUrl, dataDir }: Config): { release(): void } {
  if (databaseUrl) return { release: () => {} };
  requireStore(dataDir);
  return holdDataDir(dataDir);
}

/**
 * Migrates the store to this release's schema, an embedded one while no server runs on it; returns the versions before
 * and after. Throws StartupError.
 */
export async function migrateStore(
  context: RuntimeContext,
  dataDir: string | null,
): Promise<{ readonly from: number; readonly to: number }> {
  const config = operatorConfig(context, dataDir);
  const hold = holdEmbedded(config);
  try {
    const db = await openStore(config);
    try {
      return await migrate(db, systemClock);
    } finally {
      await db.close();
    }
  } finally {
    hold.release();
  }
}
