import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TestClock } from '../../../test/support/test-clock.ts';
import type { Database } from '../database.ts';
import { StoreMovedError } from '../failures.ts';
import { migrate } from '../schema/migrate.ts';
import { openSqlite } from '../sqlite/sqlite.ts';
import { isMoved, markMoved, movedFile, readMoved, unmarkMoved } from './moved.ts';

const mark = {
  to: 'db.example.com:5432/latchkey',
  movedAt: '2026-11-28T12:00:00.000Z',
  move: 4711,
  tables: [{ table: 'users', rows: 1, digest: 'f0' }],
  counters: { user: 1001 },
  signingKeys: 1,
};

describe('a store that was moved away', () => {
  let dataDir: string;
  let db: Database;

  beforeEach(async () => {
    dataDir = mkdtempSync(join(tmpdir(), 'latchkey-test-'));
    db = openSqlite(dataDir);
    await migrate(db, new TestClock());
  });
  afterEach(async () => {
    await db.close();
    rmSync(dataDir, { recursive: true, force: true });
  });

  const count = (name: string) =>
    db.transaction((tx) => tx.insertInto('counters').values({ name, value: 1 }).execute());
  const counted = async () =>
    (await db.read.selectFrom('counters').select('name').orderBy('name').execute()).map(({ name }) => name);

  it('writes nothing more where it is open, is not healthy, and is read as before, until it is used again (STORE-16)', async () => {
    await count('before');
    // From the time at which its last transaction leaves the mark.
    await db.transaction(async () => markMoved(dataDir, mark));
    await expect(count('after')).rejects.toThrow(StoreMovedError);
    await expect(db.check()).rejects.toThrow(StoreMovedError);
    expect(await counted()).toEqual(['before']);
    unmarkMoved(dataDir);
    await count('later');
    await db.check();
    expect(await counted()).toEqual(['before', 'later']);
  });

  it('is not opened, and the refusal names the database and the way back (STORE-16)', () => {
    markMoved(dataDir, mark);
    expect(readMoved(dataDir)).toEqual(mark);
    expect(() => openSqlite(dataDir)).toThrow(
      `The store in DATA_DIR ${dataDir} was moved to ${mark.to} on ${mark.movedAt}: set DATABASE_URL, or go back to it with latchkey move --back`,
    );
  });

  it('is not opened by a mark that cannot be read either (STORE-16)', () => {
    writeFileSync(join(dataDir, movedFile), '');
    expect(isMoved(dataDir)).toBe(true);
    expect(() => openSqlite(dataDir)).toThrow(/The mark of a move \S+ is damaged: latchkey move --back removes it/);
  });
});
