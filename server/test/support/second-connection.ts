import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { postgresConnection, type StoreConnection, type StoreStatement } from './store-connection.ts';
import type { Json, TestApp } from './test-app.ts';
import { databaseUrl, isOnPostgres } from './test-store.ts';

/** A connection of its own to the store of a running service, as another process has one. Close it before the service. */
export function secondConnection({ dataDir }: Pick<TestApp, 'dataDir'>): StoreConnection {
  return isOnPostgres ? postgresConnection(databaseUrl(dataDir)) : new Sqlite(join(dataDir, 'latchkey.db'));
}

const ofSqlite = "SELECT name FROM sqlite_master WHERE type = 'table'";
/** But for whose turn it is to write, whose it is to tidy up, and what every request counts up. */
const ofPostgres =
  "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema() AND table_name NOT IN ('writer', 'jobs', 'limit_counts') ORDER BY 1";

/** The names of all tables that hold something of the service. */
export function tableNames(store: StoreConnection): readonly string[] {
  return store
    .prepare(isOnPostgres ? ofPostgres : ofSqlite)
    .pluck()
    .all();
}

/** All rows of a table, the earlier ones first: ids and numbers count up. */
export function rowsOf(store: StoreConnection, name: string): Json[] {
  return store.prepare(`SELECT * FROM "${name}"${isOnPostgres ? ' ORDER BY 1, 2' : ''}`).all();
}

/** Every row of every table, by its name, but for what is written behind requests, whenever that may be. */
export function storedRows(app: Pick<TestApp, 'dataDir'>): Readonly<Record<string, readonly Json[]>> {
  const store = secondConnection(app);
  try {
    const settled = (row: Json) => ({ ...row, last_used_at: undefined });
    return Object.fromEntries(tableNames(store).map((name) => [name, rowsOf(store, name).map(settled)]));
  } finally {
    store.close();
  }
}

/** Returns a value that changes with every commit of another connection. */
export function commitCount(store: StoreConnection): StoreStatement {
  return store.prepare(isOnPostgres ? 'SELECT mark FROM writer' : 'PRAGMA data_version').pluck();
}

/**
 * Returns whether a transaction waits until another one ends; on the embedded store, whether one had all the time to
 * begin.
 */
export async function hasWaiters(app: TestApp): Promise<boolean> {
  if (!isOnPostgres) {
    for (let turn = 0; turn < 50; turn += 1) await setImmediate();
    return true;
  }
  return count(app, "wait_event_type = 'Lock'") > 0;
}

/** Returns the number of the service's connections to PostgreSQL in a state. */
function count(app: Pick<TestApp, 'dataDir'>, condition: string): number {
  const store = secondConnection(app);
  try {
    const sql = `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'latchkey' AND ${condition}`;
    return Number(store.prepare(sql).pluck().get());
  } finally {
    store.close();
  }
}

/** Returns whether the service keeps a snapshot of the store open: then data written since cannot be removed. */
export function isTimeHeld(app: Pick<TestApp, 'dataDir'>): boolean {
  if (isOnPostgres) return count(app, 'backend_xmin IS NOT NULL') > 0;
  const other = new Sqlite(join(app.dataDir, 'latchkey.db'));
  try {
    other.pragma('busy_timeout = 0');
    other.exec('UPDATE users SET has_logged_in = has_logged_in WHERE slug = (SELECT min(slug) FROM users)');
    const [{ busy }] = other.pragma('wal_checkpoint(TRUNCATE)') as [{ busy: number }];
    return busy === 1;
  } finally {
    other.close();
  }
}

/** Returns whether no connection has the store open any more. */
export function isStoreLeft(app: Pick<TestApp, 'dataDir'>): boolean {
  // The last connection to close takes the log with it.
  return isOnPostgres ? count(app, 'true') === 0 : !existsSync(join(app.dataDir, 'latchkey.db-wal'));
}

/** Waits for the next turn of the event loop, from which on the service sees what another connection committed. */
export async function nextTurn(): Promise<void> {
  await setImmediate();
}
