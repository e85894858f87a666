import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import type { Json, TestApp } from './test-app.ts';

/** A connection of its own to the store of a running service, as another process has one. Close it before the service. */
export function secondConnection({ dataDir }: Pick<TestApp, 'dataDir'>): Sqlite.Database {
  return new Sqlite(join(dataDir, 'latchkey.db'));
}

/** Every row of every table, by its name, but for what is written behind requests, whenever that may be. */
export function storedRows(app: Pick<TestApp, 'dataDir'>): Readonly<Record<string, readonly Json[]>> {
  const store = secondConnection(app);
  try {
    const names = store.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").pluck().all() as string[];
    const rowsOf = (name: string) => store.prepare(`SELECT * FROM "${name}"`).all();
    const settled = (row: Json) => ({ ...row, last_used_at: undefined });
    return Object.fromEntries(names.map((name) => [name, rowsOf(name).map(settled)]));
  } finally {
    store.close();
  }
}

/** Waits for the next turn of the event loop, from which on the service sees what another connection committed. */
export async function nextTurn(): Promise<void> {
  await setImmediate();
}
