import { mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { watchStatements } from '../../../test/support/statement-watch.ts';
import { TestClock } from '../../../test/support/test-clock.ts';
import { StartupError } from '../../base/errors.ts';
import type { Database } from '../database.ts';
import { openSqlite } from '../sqlite/sqlite.ts';
import { migrate } from './migrate.ts';

const clock = new TestClock();
/** Existing steps, so that the next step needs no change here: `0001-foundation.ts` is version 1, `foundation`. */
const steps = readdirSync(new URL('migrations/', import.meta.url))
  .sort()
  .map((file) => ({ version: Number(file.slice(0, 4)), name: file.slice(5, -'.ts'.length) }));
const latest = steps.length;

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
    expect(steps.map(({ version }) => version)).toEqual(steps.map((_, place) => place + 1));
    expect(await versions()).toEqual(steps.map((step) => ({ ...step, applied_at: clock.now() })));
  });

  it('may run again and changes nothing then (STORE-9)', async () => {
    await migrate(db, clock);
    const [before, mark] = [schema(), db.dataVersion()];
    await migrate(db, clock);
    expect(schema()).toEqual(before);
    expect(await versions()).toHaveLength(latest);
    expect(db.dataVersion()).toBe(mark);
  });

  it('keeps what is stored when it runs again (STORE-9)', async () => {
    await migrate(db, clock);
    await db.transaction((tx) => tx.insertInto('counters').values({ name: 'user', value: 1_234 }).execute());
    await migrate(db, clock);
    expect(await db.read.selectFrom('counters').selectAll().execute()).toEqual([{ name: 'user', value: 1_234 }]);
  });

  /**
   * Migrates, and fails just before the statement at a place, counted from the beginning of the first step that is
   * still to be done. Answers in which step that was, 0 being the first; `null` when there was no such statement.
   */
  async function failAt(place: number): Promise<number | null> {
    // The first transaction of all is that of the record of steps.
    let step = -2;
    let seen = 0;
    const stop = watchStatements((sql) => {
      if (sql === 'begin immediate') step += 1;
      if (step < 0) return;
      seen += 1;
      if (seen === place + 1) throw new Error('injected');
    });
    try {
      await migrate(db, clock);
      return null;
    } catch (error) {
      if (String(error).includes('injected')) return step;
      throw error;
    } finally {
      stop();
    }
  }

  /** Inserts users and tokens as every release has them; the first one had no more columns than these. */
  function insertUsers(): void {
    inFile((connection) => {
      connection.exec(`
        INSERT INTO organizations (id, singleton, slug, account_type, domain, contact_email, onboarding_status, is_deleted,
          created_at, updated_at) VALUES ('o', 1, 'org-1', 'business', 'x.io', 'a@x.io', 'skipped', 0, 1, 1);
        INSERT INTO users (id, org_id, slug, email, full_name, has_logged_in, is_deleted, created_at, updated_at) VALUES
          ('u1', 'o', 'user-1', 'a@x.io', 'ÅSA', 1, 0, 1, 1), ('u2', 'o', 'user-2', 'b@x.io', 'Straße', 0, 1, 1, 1);
        INSERT INTO personal_access_tokens (id, hash, org_id, user_id, name, scopes, created_at)
          VALUES ('t', 'h', 'o', 'u1', 'ΣΊΣΥΦΟΣ', 'openid', 1)`);
    });
  }

  it('does each step whole or not at all, whichever statement of it fails, and then does it again (STORE-10)', async () => {
    await failAt(0);
    for (const { version } of steps) {
      const [before, done] = [schema(), await versions()];
      expect(done).toHaveLength(version - 1);
      let place = 0;
      while ((await failAt(place)) === 0) {
        expect([version, await versions(), schema()]).toEqual([version, done, before]);
        place += 1;
      }
      expect(place).toBeGreaterThan(3);
      expect(await versions()).toHaveLength(version);
      // From here on there is something to be brought along.
      if (version === 1) insertUsers();
    }
    expect(inFile((connection) => connection.prepare('SELECT name_key FROM users').pluck().all())).toEqual([
      'åsa',
      'strasse',
    ]);
  });

  it('refuses a store that a newer release has written, in one line, and leaves it alone (STORE-10)', async () => {
    await migrate(db, clock);
    inFile((connection) => connection.exec("INSERT INTO schema_migrations VALUES (99, 'from-tomorrow', 0)"));
    const before = schema();
    const refused = migrate(db, clock);
    await expect(refused).rejects.toBeInstanceOf(StartupError);
    await expect(refused).rejects.toThrow(
      `The store has schema 99, this release knows ${latest}: start the newer release that wrote it`,
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
