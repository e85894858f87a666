import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import type { TestApp } from './test-app.ts';

/** A connection of its own to the store of a running service, as another process has one. Close it before the service. */
export function secondConnection({ dataDir }: Pick<TestApp, 'dataDir'>): Sqlite.Database {
  return new Sqlite(join(dataDir, 'latchkey.db'));
}

/** Waits for the next turn of the event loop, from which on the service sees what another connection committed. */
export async function nextTurn(): Promise<void> {
  await setImmediate();
}
