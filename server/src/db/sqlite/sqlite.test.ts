import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { nextTurn } from '../../../test/support/second-connection.ts';
import { watchSqlite } from '../../../test/support/statement-watch.ts';
import { TestClock } from '../../../test/support/test-clock.ts';
import { cachedQuery, type Database, type Placeholders, preparedQuery } from '../database.ts';
import { isStoreFailure } from '../failures.ts';
import { migrate } from '../schema/migrate.ts';
import { openSqlite } from './sqlite.ts';

const selectCounter = preparedQuery((read, { name }: Placeholders<{ name: string }>) =>
  read.selectFrom('counters').where('name', '=', name).where('value', '>', 0).select('value'),
);
const selectKept = cachedQuery(
  (read, { name }: Placeholders<{ name: string }>) =>
    read.selectFrom('counters').where('name', '=', name).select('value'),
  ({ value }) => ({ value }),
);

describe('the embedded store', () => {
  let directory: string;
  let db: Database;
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'latchkey-test-'));
    db = openSqlite(directory);
    await migrate(db, new TestClock());
  });
  afterEach(async () => {
    await db.close();
    rmSync(directory, { recursive: true, force: true });
  });

  const set = (name: string, value: number, store = db) =>
    store.transaction((tx) =>
      tx
        .insertInto('counters')
        .values({ name, value })
        .onConflict((oc) => oc.column('name').doUpdateSet({ value }))
        .execute(),
    );
  const seen = async () => ({
    read: (await db.read.selectFrom('counters').select('value').execute()).map(({ value }) => value),
    hot: (await db.first(selectCounter, { name: 'user' }))?.value,
    kept: (await db.first(selectKept, { name: 'user' }))?.value,
  });

  it('shows others nothing of an open transaction, and everything of a committed one (STORE-1)', async () => {
    const inside: unknown[] = [];
    await db.transaction(async (tx) => {
      await tx.insertInto('counters').values({ name: 'user', value: 7 }).execute();
      inside.push(await seen(), await tx.selectFrom('counters').select('value').execute());
    });
    expect(inside).toEqual([{ read: [], hot: undefined, kept: undefined }, [{ value: 7 }]]);
    expect(await seen()).toEqual({ read: [7], hot: 7, kept: 7 });
  });

  it('leaves nothing of a transaction that throws, also after several statements (STORE-1)', async () => {
    const failing = db.transaction(async (tx) => {
      await tx.insertInto('counters').values({ name: 'user', value: 7 }).execute();
      await tx.insertInto('counters').values({ name: 'org', value: 8 }).execute();
      await tx.insertInto('counters').values({ name: 'org', value: 9 }).execute();
    });
    await expect(failing).rejects.toThrow(/UNIQUE/);
    expect(await seen()).toEqual({ read: [], hot: undefined, kept: undefined });
    await set('user', 1);
    expect(await seen()).toEqual({ read: [1], hot: 1, kept: 1 });
  });

  it('does one transaction after another, in the order in which they were asked for (STORE-1)', async () => {
    const order: string[] = [];
    const slowly = async (name: string) =>
      db.transaction(async (tx) => {
        order.push(`${name} begins`);
        for (let turn = 0; turn < 5; turn += 1) await tx.selectFrom('counters').select('value').execute();
        order.push(`${name} ends`);
      });
    await Promise.all(['a', 'b', 'c'].map(slowly));
    expect(order).toEqual(['a begins', 'a ends', 'b begins', 'b ends', 'c begins', 'c ends']);
  });

  it('cannot be written through what reads', async () => {
    await expect(db.read.insertInto('counters').values({ name: 'user', value: 7 }).execute()).rejects.toThrow(
      /readonly/,
    );
    expect(await seen()).toEqual({ read: [], hot: undefined, kept: undefined });
  });

  it('holds a statement that comes again, and none as long as a list that someone sent', async () => {
    const prepare = vi.spyOn(Sqlite.prototype, 'prepare');
    const ask = async (length: number) => {
      const ids = Array.from({ length }, (_, place) => String(place));
      for (let time = 0; time < 3; time += 1)
        await db.read.selectFrom('users').where('id', 'in', ids).select('id').execute();
      return prepare.mock.calls.splice(0).length;
    };
    expect([await ask(3), await ask(3), await ask(2_000)]).toEqual([1, 0, 3]);
    prepare.mockRestore();
  });

  it('keeps foreign keys', async () => {
    const orphan = db.transaction((tx) =>
      tx.insertInto('group_members').values({ group_id: 'x', user_id: 'y' }).execute(),
    );
    await expect(orphan).rejects.toThrow(/FOREIGN KEY/);
  });

  it('changes commitMark with every commit, its own and that of others, and with nothing else (AUTH-27)', async () => {
    const marks = [db.dataVersion()];
    const uncommitted: unknown[] = [];
    await seen();
    await db.transaction((tx) => tx.selectFrom('counters').select('value').execute());
    await db
      .transaction(async (tx) => {
        await tx.insertInto('counters').values({ name: 'user', value: 7 }).execute();
        // What is not committed yet does not count.
        uncommitted.push(db.dataVersion());
        throw new Error('changed its mind');
      })
      .catch(() => {});
    await nextTurn();
    expect([...uncommitted, db.dataVersion()]).toEqual([marks[0], marks[0]]);

    await set('user', 1);
    marks.push(db.dataVersion());
    const other = new Sqlite(join(directory, 'latchkey.db'));
    other.exec("UPDATE counters SET value = 2 WHERE name = 'user'");
    await nextTurn();
    marks.push(db.dataVersion());
    const second = openSqlite(directory);
    await set('user', 3, second);
    await nextTurn();
    marks.push(db.dataVersion());
    expect(new Set(marks).size).toBe(4);
    expect(await seen()).toEqual({ read: [3], hot: 3, kept: 3 });
    await second.close();
    other.close();
  });

  it('keeps a value until the next commit, its own or that of others, and one of nothing not at all (AUTH-27)', async () => {
    expect(await db.first(selectKept, { name: 'user' })).toBeUndefined();
    await set('user', 1);
    const first = await db.first(selectKept, { name: 'user' });
    expect(first).toEqual({ value: 1 });
    expect(await db.first(selectKept, { name: 'user' })).toBe(first);
    expect(await db.first(selectKept, { name: 'org' })).toBeUndefined();
    await set('user', 2);
    expect(await db.first(selectKept, { name: 'user' })).toEqual({ value: 2 });
    const other = new Sqlite(join(directory, 'latchkey.db'));
    other.exec("UPDATE counters SET value = 3 WHERE name = 'user'");
    other.close();
    await nextTurn();
    expect(await db.first(selectKept, { name: 'user' })).toEqual({ value: 3 });
  });

  it('waits for another process that is writing, instead of failing (STORE-1)', async () => {
    const program = `
      const connection = new (require('better-sqlite3'))(process.argv[1]);
      connection.exec('BEGIN IMMEDIATE');
      require('node:fs').writeSync(1, 'writing');
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
      connection.exec("INSERT INTO counters VALUES ('org', 5); COMMIT");
    `;
    const cwd = import.meta.dirname;
    const child = spawn(process.execPath, ['--eval', program, join(directory, 'latchkey.db')], { cwd });
    await once(child.stdout, 'data');
    await set('user', 1);
    expect((await seen()).read.sort((a, b) => a - b)).toEqual([1, 5]);
    if (child.exitCode === null) await once(child, 'exit');
    expect(child.exitCode).toBe(0);
  });

  it('syncs each commit to the disk before it is answered (STORE-2)', async () => {
    const settings: unknown[] = [];
    const stop = watchSqlite((sql, connection) => {
      if (sql !== 'commit') return;
      settings.push(
        connection.pragma('journal_mode', { simple: true }),
        connection.pragma('synchronous', { simple: true }),
      );
    });
    await set('user', 1);
    stop();
    // 2 is FULL.
    expect(settings).toEqual(['wal', 2]);
  });

  it('tells a store that fails from a statement that is wrong (STORE-12)', async () => {
    const wrong = await set('user', Number.NaN).catch((error: unknown) => error);
    expect(isStoreFailure(wrong)).toBe(false);
    for (const code of [
      'SQLITE_FULL',
      'SQLITE_IOERR_FSYNC',
      'SQLITE_BUSY',
      'SQLITE_READONLY',
      'SQLITE_CORRUPT_INDEX',
    ]) {
      expect(isStoreFailure(new Sqlite.SqliteError('x', code))).toBe(true);
    }
    for (const error of [new Sqlite.SqliteError('x', 'SQLITE_CONSTRAINT_UNIQUE'), new Error('SQLITE_FULL'), null]) {
      expect(isStoreFailure(error)).toBe(false);
    }
  });

  it('answers check while it can be read, and refuses once it is closed (STORE-12)', async () => {
    await expect(db.check()).resolves.toBeUndefined();
    const other = openSqlite(directory);
    await other.check();
    await other.close();
    await expect(other.check()).rejects.toThrow('driver has already been destroyed');
  });
});
