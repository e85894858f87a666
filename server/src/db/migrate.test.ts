import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { watchStatements } from '../../test/statement-watch.ts';
import { TestClock } from '../../test/test-clock.ts';
import { StartupError } from '../errors.ts';
import type { Database } from './database.ts';
import { migrate } from './migrate.ts';
import { openSqlite } from './sqlite.ts';

const clock = new TestClock();

describe('migrate', () => {
  let directory: string;
  let db: Database;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'latchkey-test-'));
    db = openSqlite(directory);
  });
  afterEach(async () => {
    await db.close();
    rmSync(directory, { recursive: true, force: true });
  });

  function inFile<T>(work: (connection: Sqlite.Database) => T): T {
    const connection = new Sqlite(join(directory, 'latchkey.db'));
    try {
      return work(connection);
    } finally {
      connection.close();
    }
  }
  const schema = () =>
    inFile((connection) => connection.prepare('SELECT type, name, sql FROM sqlite_master ORDER BY name').all());
  const versions = () => db.read.selectFrom('schema_migrations').orderBy('version').selectAll().execute();

  it('brings an empty store to this version, and notes each step (STORE-9)', async () => {
    await migrate(db, clock);
    expect(await versions()).toEqual([{ version: 1, name: 'foundation', applied_at: clock.now() }]);
  });

  it('may run again and changes nothing then (STORE-9)', async () => {
    await migrate(db, clock);
    const [before, mark] = [schema(), db.commitMark()];
    await migrate(db, clock);
    expect(schema()).toEqual(before);
    expect(await versions()).toHaveLength(1);
    expect(db.commitMark()).toBe(mark);
  });

  it('keeps what is stored when it runs again (STORE-9)', async () => {
    await migrate(db, clock);
    await db.transaction((tx) => tx.insertInto('counters').values({ name: 'user', value: 1_234 }).execute());
    await migrate(db, clock);
    expect(await db.read.selectFrom('counters').selectAll().execute()).toEqual([{ name: 'user', value: 1_234 }]);
  });

  it('does a step whole or not at all, whichever statement of it fails, and then does it again (STORE-10)', async () => {
    const whole: string[] = [];
    const twin = mkdtempSync(join(tmpdir(), 'latchkey-test-'));
    const stopCounting = watchStatements((sql) => void whole.push(sql));
    const other = openSqlite(twin);
    await migrate(other, clock);
    stopCounting();
    await other.close();
    rmSync(twin, { recursive: true, force: true });
    const steps = whole.slice(whole.lastIndexOf('begin immediate'), whole.lastIndexOf('commit') + 1);
    expect(steps.length).toBeGreaterThan(15);

    for (const place of steps.keys()) {
      let begun = 0;
      let seen = 0;
      const stop = watchStatements((sql) => {
        if (sql === 'begin immediate') begun += 1;
        if (begun < 2) return;
        seen += 1;
        if (seen === place + 1) throw new Error('injected');
      });
      await expect(migrate(db, clock)).rejects.toThrow('injected');
      stop();
      expect(await versions()).toEqual([]);
      expect(schema().map((entry) => (entry as { name: string }).name)).toEqual(['schema_migrations']);
    }
    await migrate(db, clock);
    expect(await versions()).toHaveLength(1);
  });

  it('refuses a store that a newer release has written, in one line, and leaves it alone (STORE-10)', async () => {
    await migrate(db, clock);
    inFile((connection) => connection.exec("INSERT INTO schema_migrations VALUES (99, 'from-tomorrow', 0)"));
    const before = schema();
    const refused = migrate(db, clock);
    await expect(refused).rejects.toBeInstanceOf(StartupError);
    await expect(refused).rejects.toThrow(
      'The store has schema 99, this release knows 1: start the newer release that wrote it',
    );
    expect(schema()).toEqual(before);
  });

  it('refuses a store with half a step in it, in one line (STORE-10)', async () => {
    inFile((connection) => connection.exec('CREATE TABLE organizations (id text)'));
    const refused = migrate(db, clock);
    await expect(refused).rejects.toBeInstanceOf(StartupError);
    await expect(refused).rejects.toThrow(
      /^The store cannot be brought to schema 1 \(foundation\) and was left as it was: [^\n]*organizations[^\n]*$/,
    );
    expect(await versions()).toEqual([]);
  });
});
