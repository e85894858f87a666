import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import type { TestApp } from './test-app.ts';

/** A connection of its own to the store of a running service, as another process has one. Close it before the service. */
export function secondConnection({ dataDir }: Pick<TestApp, 'dataDir'>): Sqlite.Database {
  return new Sqlite(join(dataDir, 'latchkey.db'));
}

/**
 * Waits as whoever writes beside a running service waits before answering: until the service sees what was committed.
 * It is the millisecond for which the service may hold a commit mark, and one more for the timer.
 */
export async function untilSeen(): Promise<void> {
  await setTimeout(2);
}
