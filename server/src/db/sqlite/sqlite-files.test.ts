import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TestClock } from '../../../test/support/test-clock.ts';
import type { Database } from '../database.ts';
import { migrate } from '../schema/migrate.ts';
import { openSqlite } from './sqlite.ts';

const megabyte = 1_048_576;
const logBytesMax = 64 * megabyte;

describe('the files of the embedded store', () => {
  let directory: string;
  let file: string;
  let db: Database;
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'latchkey-test-'));
    file = join(directory, 'latchkey.db');
    db = openSqlite(directory);
    await migrate(db, new TestClock());
  });
  afterEach(async () => {
    await db.close();
    rmSync(directory, { recursive: true, force: true });
  });

  const logBytes = () => statSync(`${file}-wal`).size;
  const count = (value: number) =>
    db.transaction((tx) =>
      tx
        .insertInto('counters')
        .values({ name: 'user', value })
        .onConflict((oc) => oc.column('name').doUpdateSet({ value }))
        .execute(),
    );

  /** Moves the log into the store file, and makes sure that no connection is in the way. */
  function emptyLog(): void {
    const other = new Sqlite(file);
    const [{ busy }] = other.pragma('wal_checkpoint(TRUNCATE)') as [{ busy: number }];
    other.close();
    expect([busy, logBytes()]).toEqual([0, 0]);
  }

  it('the log grows while lists overlap, and gives its space back once they have ended', async () => {
    // The table holds it, and its index once more.
    const write = (letter: string) =>
      db.transaction(async (tx) => {
        await tx.deleteFrom('counters').where('value', '=', -1).execute();
        await tx
          .insertInto('counters')
          .values({ name: letter.repeat(10 * megabyte), value: -1 })
          .execute();
      });
    await db.transaction(async (tx) => {
      for (let version = 0; version < 500; version += 1) {
        await tx
          .insertInto('counters')
          .values({ name: `n${version}`, value: version })
          .execute();
      }
    });
    const list = async (reader: string) => {
      const rows = db.batches(db.read.selectFrom('counters').selectAll(), reader)[Symbol.asyncIterator]();
      await rows.next();
      return rows;
    };
    const first = await list('ada');
    await write('a');
    await write('b');
    const second = await list('grace');
    await first.return?.();
    await write('c');
    await write('d');
    expect(logBytes()).toBeGreaterThan(logBytesMax);
    await second.return?.();
    // One commit moves all of the log into the store, and the next starts it over.
    await count(1);
    await count(2);
    expect(logBytes()).toBeLessThanOrEqual(logBytesMax);
    expect(logBytes()).toBeGreaterThan(0);
  });

  it.each([
    [
      'deleted',
      () => db.transaction((tx) => tx.deleteFrom('password_credentials').where('user_id', '=', 'b').execute()),
    ],
    [
      'replaced by a shorter one',
      () =>
        db.transaction((tx) =>
          tx.updateTable('password_credentials').set({ password_hash: 'short' }).where('user_id', '=', 'b').execute(),
        ),
    ],
  ])('the hash of a password that is %s is not left behind', async (_, remove) => {
    const hash = 'never-to-be-found-again'.repeat(5);
    const other = new Sqlite(file);
    other.pragma('foreign_keys = OFF');
    const insert = other.prepare('INSERT INTO password_credentials VALUES (?, ?, 0)');
    for (const userId of ['a', 'b', 'c']) insert.run(userId, userId === 'b' ? hash : `the hash of ${userId}`);
    other.close();
    emptyLog();
    expect(readFileSync(file).includes(hash)).toBe(true);
    await remove();
    emptyLog();
    const left = readFileSync(file).toString('latin1');
    expect(left).toContain('the hash of a');
    expect(left).not.toContain('again');
  });
});
