import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { PostgresPlace, selectCounter, selectKept, setCounter } from '../../../test/support/postgres-place.ts';
import { StoreWire } from '../../../test/support/store-wire.ts';
import type { Database } from '../database.ts';
import { isStoreFailure, StoreBusyError } from '../failures.ts';

let place: PostgresPlace;
let db: Database;
beforeEach(async () => {
  place = await PostgresPlace.make();
  db = await place.openMigrated();
});
afterEach(() => place.remove());

const values = async () =>
  (await place.run('select value from counters order by value')).map(({ value }) => Number(value));
const failure = (work: Promise<unknown>) => work.then(() => null).catch((error: unknown) => error);
/** Beyond the number of connections that a node has. */
const many = 60;

/** Whatever there is works, on as many connections as a node has. */
async function expectWhole(): Promise<void> {
  await setCounter(db, 'whole', 99);
  const reads = Array.from({ length: many }, () => db.first(selectCounter, { name: 'whole' }));
  expect(new Set((await Promise.all(reads)).map((row) => row?.value))).toEqual(new Set([99]));
  expect((await db.first(selectKept, { name: 'whole' }))?.value).toBe(99);
}

describe('statements that are wrong', () => {
  it('leave the pool whole, however many there are, in transactions and outside', async () => {
    const wrong = () => sql`select * from nowhere`;
    const outside = Array.from({ length: many }, () => failure(wrong().execute(db.read)));
    const inside = Array.from({ length: many }, () => failure(db.transaction((tx) => wrong().execute(tx))));
    const errors = await Promise.all([...outside, ...inside]);
    expect(new Set(errors.map((error) => (error as { code?: string }).code))).toEqual(new Set(['42P01']));
    expect(await place.count("state like 'idle in transaction%'")).toBe(0);
    await expectWhole();
  });
});

describe('what others were in the way of', () => {
  const conflict = sql`do $$ begin raise exception 'somebody was quicker' using errcode = '40001'; end $$`;

  it('is done again, and nothing is left of the tries before (STORE-1)', async () => {
    let tries = 0;
    await db.transaction(async (tx) => {
      tries += 1;
      await tx
        .insertInto('counters')
        .values({ name: `try ${tries}`, value: tries })
        .execute();
      if (tries < 4) await conflict.execute(tx);
    });
    expect([tries, await values()]).toEqual([4, [4]]);
  });

  it('is told as a store that cannot be used, after five tries', async () => {
    let tries = 0;
    const error = await failure(
      db.transaction(async (tx) => {
        tries += 1;
        await conflict.execute(tx);
      }),
    );
    expect([tries, isStoreFailure(error), await values()]).toEqual([5, true, []]);
    await expectWhole();
  });

  it('is not done again where the work itself threw something else', async () => {
    let tries = 0;
    const error = await failure(
      db.transaction(async () => {
        tries += 1;
        throw new Error('mistake');
      }),
    );
    expect([tries, isStoreFailure(error)]).toEqual([1, false]);
  });
});

describe('connections that are cut', () => {
  it('while no one uses them: no one notices (STORE-12)', async () => {
    await expectWhole();
    expect(await place.cut()).toBeGreaterThan(5);
    await vi.waitUntil(async () => (await place.count()) === 0);
    await expectWhole();
  });

  it('in the middle of a transaction: nothing of it is kept, and the next one works (STORE-1, STORE-12)', async () => {
    const error = await failure(
      db.transaction(async (tx) => {
        await tx.insertInto('counters').values({ name: 'user', value: 1 }).execute();
        await place.cut("state = 'idle in transaction'");
        await tx.insertInto('counters').values({ name: 'org', value: 2 }).execute();
      }),
    );
    expect([isStoreFailure(error), await values()]).toEqual([true, []]);
    await expectWhole();
  });

  it('between the last statement and the commit: nothing of it is kept (STORE-1, STORE-12)', async () => {
    const error = await failure(
      db.transaction(async (tx) => {
        await tx.insertInto('counters').values({ name: 'user', value: 1 }).execute();
        await place.cut("state = 'idle in transaction'");
      }),
    );
    expect([isStoreFailure(error), await values()]).toEqual([true, []]);
    await expectWhole();
  });

  it('between the commit and its answer: it fails, is kept, and is not done twice (STORE-1, STORE-12)', async () => {
    const wire = await StoreWire.lay(place.url);
    const node = await place.open(wire.url);
    let tries = 0;
    wire.cutAfter(/commit\0/);
    const error = await failure(
      node.transaction(async (tx) => {
        tries += 1;
        await tx
          .insertInto('counters')
          .values({ name: `try ${tries}`, value: tries })
          .execute();
      }),
    );
    await vi.waitUntil(async () => (await values()).length > 0);
    expect([isStoreFailure(error), tries, wire.cuts, await values()]).toEqual([true, 1, 1, [1]]);
    // Another node, and this one, see it.
    expect((await db.first(selectKept, { name: 'try 1' }))?.value).toBe(1);
    expect((await node.first(selectKept, { name: 'try 1' }))?.value).toBe(1);
    await node.close();
    await wire.close();
  });

  it('while the mark is asked for: no one is let in by what was kept, and the next one is asked (AUTH-27)', async () => {
    const wire = await StoreWire.lay(place.url);
    const node = await place.open(wire.url);
    await setCounter(db, 'user', 1);
    expect((await node.first(selectKept, { name: 'user' }))?.value).toBe(1);
    wire.cutAfter(/\0mark\0/);
    const error = await failure(node.first(selectKept, { name: 'user' }));
    expect([isStoreFailure(error), wire.cuts]).toEqual([true, 1]);
    await setCounter(db, 'user', 2);
    expect((await node.first(selectKept, { name: 'user' }))?.value).toBe(2);
    await node.close();
    await wire.close();
  });
});

describe('too many at once', () => {
  it('all connections taken: anyone who finds none is told soon that the store is busy, the others are answered (STORE-12)', async () => {
    const outsider = await place.outsider();
    await outsider.query('begin; lock table counters in access exclusive mode');
    const reads = Promise.allSettled(
      Array.from({ length: 20 }, () => db.read.selectFrom('counters').selectAll().execute()),
    );
    await vi.waitUntil(async () => (await place.count("wait_event_type = 'Lock'")) === 20);
    const error = await failure(db.read.selectFrom('users').selectAll().execute());
    expect([error instanceof StoreBusyError, isStoreFailure(error)]).toEqual([true, true]);
    // What tells about commits has a connection of its own.
    await db.refreshVersion();
    const responses = await reads;
    // They waited for a lock longer than the timeout.
    expect(
      responses.every(({ status, ...more }) => status === 'fulfilled' || isStoreFailure(Reflect.get(more, 'reason'))),
    ).toBe(true);
    await outsider.query('rollback');
    await outsider.end();
    await expectWhole();
  });

  it('another node writes for too long: anyone who waits is told that the store cannot be used (STORE-12)', async () => {
    const outsider = await place.outsider();
    await outsider.query('begin; update writer set mark = 1');
    const errors = await Promise.all(Array.from({ length: 8 }, (_, number) => failure(setCounter(db, 'user', number))));
    expect(errors.every(isStoreFailure)).toBe(true);
    // The first two waited at the row, the others for their turn, and none of them is done later.
    expect(errors.filter((error) => error instanceof StoreBusyError).length).toBeGreaterThanOrEqual(4);
    await outsider.query('rollback');
    await outsider.end();
    await expectWhole();
    expect(await values()).toEqual([99]);
  });

  it('reads go on while someone writes (STORE-13)', async () => {
    await setCounter(db, 'user', 1);
    const outsider = await place.outsider();
    await outsider.query("begin; update writer set mark = 1; update counters set value = 2 where name = 'user'");
    expect((await db.first(selectKept, { name: 'user' }))?.value).toBe(1);
    await outsider.query('commit');
    await outsider.end();
    expect((await db.first(selectKept, { name: 'user' }))?.value).toBe(2);
  });
});
