import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { PostgresPlace, selectCounter, selectKept, setCounter } from '../../../test/support/postgres-place.ts';
import { StartupError } from '../../base/errors.ts';
import { Secret } from '../../base/secret.ts';
import type { Database } from '../database.ts';
import { isStoreFailure } from '../failures.ts';
import { openPostgres } from './postgres.ts';

let place: PostgresPlace;
let db: Database;
beforeEach(async () => {
  place = await PostgresPlace.make();
  db = await place.openMigrated();
});
afterEach(() => place.remove());

const seen = async (node = db) => ({
  read: (await node.read.selectFrom('counters').orderBy('value').select('value').execute()).map(({ value }) => value),
  hot: (await node.first(selectCounter, { name: 'user' }))?.value,
  kept: (await node.first(selectKept, { name: 'user' }))?.value,
});

describe('a store in PostgreSQL, transactions', () => {
  it('shows others nothing of an open transaction, and everything of a committed one (STORE-1, STORE-13)', async () => {
    const inside: unknown[] = [];
    await db.transaction(async (tx) => {
      await tx.insertInto('counters').values({ name: 'user', value: 7 }).execute();
      inside.push(await seen(), await tx.selectFrom('counters').select('value').execute());
    });
    expect(inside).toEqual([{ read: [], hot: undefined, kept: undefined }, [{ value: 7 }]]);
    expect(await seen()).toEqual({ read: [7], hot: 7, kept: 7 });
  });

  it('leaves nothing of a transaction that throws, also after several statements, and goes on (STORE-1)', async () => {
    const failing = db.transaction(async (tx) => {
      await tx.insertInto('counters').values({ name: 'user', value: 7 }).execute();
      await tx.insertInto('counters').values({ name: 'org', value: 8 }).execute();
      await tx.insertInto('counters').values({ name: 'org', value: 9 }).execute();
    });
    await expect(failing).rejects.toMatchObject({ code: '23505' });
    expect(await seen()).toEqual({ read: [], hot: undefined, kept: undefined });
    await setCounter(db, 'user', 1);
    expect(await seen()).toEqual({ read: [1], hot: 1, kept: 1 });
  });

  it('does one transaction after another, those of other nodes included (STORE-1, STORE-13)', async () => {
    const nodes = [db, await place.open()];
    let running = 0;
    const together: number[] = [];
    const slowly = (node: Database) =>
      node.transaction(async (tx) => {
        running += 1;
        together.push(running);
        for (let turn = 0; turn < 3; turn += 1) await tx.selectFrom('counters').select('value').execute();
        running -= 1;
      });
    await Promise.all(Array.from({ length: 20 }, (_, number) => slowly(nodes[number % 2] ?? db)));
    expect(together).toEqual(Array.from({ length: 20 }, () => 1));
  });

  it('loses no count of what two nodes count up at once (STORE-3)', async () => {
    const nodes = [db, await place.open()];
    await setCounter(db, 'user', 0);
    const up = (node: Database) =>
      node.transaction(async (tx) => {
        const { value } = await tx
          .selectFrom('counters')
          .where('name', '=', 'user')
          .select('value')
          .executeTakeFirstOrThrow();
        await tx
          .updateTable('counters')
          .set({ value: value + 1 })
          .where('name', '=', 'user')
          .execute();
      });
    await Promise.all(Array.from({ length: 40 }, (_, number) => up(nodes[number % 2] ?? db)));
    expect((await seen()).read).toEqual([40]);
  });

  it('keeps foreign keys, and numbers as numbers', async () => {
    const orphan = db.transaction((tx) =>
      tx.insertInto('group_members').values({ group_id: 'x', user_id: 'y' }).execute(),
    );
    await expect(orphan).rejects.toMatchObject({ code: '23503' });
    await setCounter(db, 'user', Number.MAX_SAFE_INTEGER);
    const { count, most } = await db.read
      .selectFrom('counters')
      .select(({ fn }) => [fn.countAll().as('count'), fn.max('value').as('most')])
      .executeTakeFirstOrThrow();
    expect([count, most, (await seen()).kept]).toEqual([1, Number.MAX_SAFE_INTEGER, Number.MAX_SAFE_INTEGER]);
  });

  it('sorts and compares text by its bytes, whatever language the database speaks (STORE-13)', async () => {
    for (const [number, name] of ['b', 'B', 'a', 'ä', 'Z', '_'].entries()) await setCounter(db, name, number);
    const rows = await db.read.selectFrom('counters').orderBy('name').select('name').execute();
    expect(rows.map(({ name }) => name)).toEqual(['B', 'Z', '_', 'a', 'b', 'ä']);
  });
});

describe('a store in PostgreSQL, what is kept in memory', () => {
  it('changes commitMark with every commit, of this node or another, and with nothing else (AUTH-27)', async () => {
    const other = await place.open();
    const mark = async () => {
      await db.refreshVersion();
      return db.dataVersion();
    };
    const first = await mark();
    await seen();
    await db
      .transaction(async (tx) => {
        await tx.insertInto('counters').values({ name: 'user', value: 7 }).execute();
        throw new Error('changed its mind');
      })
      .catch(() => {});
    expect(await mark()).toBe(first);
    const marks = [first];
    for (const node of [db, other, db, other]) {
      await setCounter(node, 'user', marks.length);
      marks.push(await mark());
    }
    expect(new Set(marks).size).toBe(5);
  });

  it('keeps a value until the next commit, of this node or another, and one of nothing not at all (AUTH-27)', async () => {
    const other = await place.open();
    expect(await db.first(selectKept, { name: 'user' })).toBeUndefined();
    await setCounter(db, 'user', 1);
    const first = await db.first(selectKept, { name: 'user' });
    expect(first).toEqual({ value: 1 });
    expect(await db.first(selectKept, { name: 'user' })).toBe(first);
    for (const [number, node] of [db, other].entries()) {
      await setCounter(node, 'user', number + 2);
      expect(await db.first(selectKept, { name: 'user' })).toEqual({ value: number + 2 });
    }
  });

  it('never answers what was true before a commit that another node was told of: 300 races (AUTH-27)', async () => {
    const other = await place.open();
    const late: unknown[] = [];
    for (let number = 1; number <= 300; number += 1) {
      // Reads that are under way when the commit comes, and that would put back what was true before it.
      const early = [db.first(selectKept, { name: 'user' }), db.first(selectKept, { name: 'user' })];
      await setCounter(other, 'user', number);
      const after = await Promise.all([1, 2, 3].map(() => db.first(selectKept, { name: 'user' })));
      if (after.some((row) => row?.value !== number)) late.push([number, after]);
      await Promise.all(early);
    }
    expect(late).toEqual([]);
  });

  it('asks for the mark once for all who ask meanwhile, and anew for those after them', async () => {
    await db.refreshVersion();
    const waiting = Array.from({ length: 100 }, () => db.refreshVersion());
    // One that is running already, and one for all later callers.
    expect(new Set(waiting).size).toBeLessThanOrEqual(2);
    expect(await Promise.all(waiting.map(async (response) => response))).toHaveLength(100);
    expect(db.refreshVersion()).not.toBe(waiting[0]);
  });
});

describe('a store in PostgreSQL, opening and closing', () => {
  it('tells a store that fails from a statement that is wrong (STORE-12)', async () => {
    const wrong = [
      db.read
        .selectFrom('nothing' as 'counters')
        .select('value')
        .execute(),
      setCounter(db, 'user', 0.5),
      setCounter(db, 'user', Number.NaN),
    ];
    for (const error of await Promise.all(wrong.map((one) => one.catch((reason: unknown) => reason)))) {
      expect(error).toBeInstanceOf(Error);
      expect(isStoreFailure(error)).toBe(false);
    }
    await db.close();
    const closed = await db.check().catch((error: unknown) => error);
    expect(closed).toBeInstanceOf(Error);
  });

  it('leaves no session behind once it is closed', async () => {
    await seen();
    expect(await place.count()).toBeGreaterThan(0);
    await db.close();
    await vi.waitUntil(async () => (await place.count()) === 0);
  });

  it.each([
    ['nothing listens there', 'postgres://ada:pw-x@127.0.0.1:1/x', 'nothing listens at 127.0.0.1:1 (ECONNREFUSED)'],
    ['the host name is wrong', 'postgres://ada:pw-x@nowhere.invalid/x', 'the host name nowhere.invalid '],
    ['there is no such database', '', 'database "not_there" does not exist (3D000)'],
    ['there is no such user', 'user', 'role "ada" does not exist (28000)'],
    ['the server takes no TLS', 'tls', 'The server does not support SSL connections'],
  ])('refuses to start in one line where %s: where, why, and what to do (STORE-10, FIT-101)', async (_, kind, said) => {
    const made: Record<string, string> = {
      '': place.url.replace(place.name, 'not_there'),
      user: place.url.replace(/\/\/[^@]*@/, '//ada:pw-x@'),
      tls: `${place.url}?sslmode=require`,
    };
    const error = await openPostgres(new Secret(made[kind] ?? kind)).catch((reason: unknown) => reason);
    const { message } = error instanceof StartupError ? error : { message: String(error) };
    expect(message).toMatch(
      /^DATABASE_URL cannot be used \([^)]+, user \w+, database [^)]+\): [^\n]+\. To mend it: [^\n]+$/,
    );
    expect(message).toContain(said);
    expect(message).not.toContain('pw-x');
  });
});
