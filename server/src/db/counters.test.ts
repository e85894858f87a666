import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TestClock } from '../../test/support/test-clock.ts';
import { nextSlug, takeNumbers } from './counters.ts';
import type { Database } from './database.ts';
import { migrate } from './schema/migrate.ts';
import { openSqlite } from './sqlite/sqlite.ts';

describe('counters', () => {
  let directory: string;
  let db: Database;
  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'latchkey-test-'));
    db = openSqlite(directory);
    await migrate(db, new TestClock());
  });
  afterAll(async () => {
    await db.close();
    rmSync(directory, { recursive: true, force: true });
  });

  it('begins slugs at 1001 and counts up, each kind by itself (STORE-3)', async () => {
    const slugs = await db.transaction(async (tx) => [
      await nextSlug(tx, 'org'),
      await nextSlug(tx, 'user'),
      await nextSlug(tx, 'user'),
      await nextSlug(tx, 'usergroup'),
    ]);
    expect(slugs).toEqual(['org-1001', 'user-1001', 'user-1002', 'usergroup-1001']);
    expect(await db.transaction((tx) => nextSlug(tx, 'user'))).toBe('user-1003');
  });

  it('begins sequences at 1 and takes several numbers at once (EVENT-10)', async () => {
    const firsts = await db.transaction(async (tx) => [
      await takeNumbers(tx, 'event'),
      await takeNumbers(tx, 'event', 3),
      await takeNumbers(tx, 'event'),
    ]);
    expect(firsts).toEqual([1, 2, 5]);
    expect(await db.transaction((tx) => takeNumbers(tx, 'event', 2))).toBe(6);
  });

  it('does not use up the numbers of a transaction that fails (STORE-1)', async () => {
    const before = await db.transaction((tx) => takeNumbers(tx, 'audit'));
    const failing = db.transaction(async (tx) => {
      await takeNumbers(tx, 'audit', 100);
      throw new Error('changed its mind');
    });
    await expect(failing).rejects.toThrow('changed its mind');
    expect(await db.transaction((tx) => takeNumbers(tx, 'audit'))).toBe(before + 1);
  });

  it('gives each of many at once numbers of its own, without gaps (STORE-3, STORE-5)', async () => {
    const first = await db.transaction((tx) => takeNumbers(tx, 'usergroup'));
    const inputs = Array.from({ length: 50 }, (_, place) =>
      db
        .transaction(async (tx) => {
          const number = await takeNumbers(tx, 'usergroup');
          if (place % 5 === 0) throw new Error('changed its mind');
          return number;
        })
        .catch(() => null),
    );
    const given = (await Promise.all(inputs)).filter((number) => number !== null);
    expect(given).toEqual(Array.from({ length: 40 }, (_, place) => first + 1 + place));
  });
});
