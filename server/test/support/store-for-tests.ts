import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestProject } from 'vitest/node';
import { storeFile } from '../../src/db/files/data-dir.ts';
import { migrate } from '../../src/db/schema/migrate.ts';
import { openSqlite } from '../../src/db/sqlite/sqlite.ts';
import { TestClock } from './test-clock.ts';

declare module 'vitest' {
  interface ProvidedContext {
    /** The file of an embedded store that is migrated already, of which others are copies. */
    readonly embeddedTemplate?: string;
  }
}

/** Makes a store once of which the tests on the embedded store begin with copies; answers how to remove it. */
export async function setup(project: TestProject): Promise<() => void> {
  const directory = mkdtempSync(join(tmpdir(), 'latchkey-template-'));
  const db = openSqlite(directory);
  await migrate(db, new TestClock());
  await db.close();
  project.provide('embeddedTemplate', join(directory, storeFile));
  return () => rmSync(directory, { recursive: true, force: true });
}
