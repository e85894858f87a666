import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { PostgresPlace, selectCounter, setCounter } from '../../../test/support/postgres-place.ts';
import { ApiError } from '../../base/errors.ts';
import type { Database } from '../database.ts';
import { isStoreFailure } from '../failures.ts';

const atOnceMax = 8;
const ofOneMax = 4;
const total = 2_000;

let place: PostgresPlace;
let db: Database;
let readers = 0;
beforeEach(async () => {
  place = await PostgresPlace.make();
  db = await place.openMigrated();
  const rows = Array.from({ length: total }, (_, value) => ({ name: String(value).padStart(6, '0'), value }));
  await db.transaction((tx) => tx.insertInto('counters').values(rows).execute());
});
beforeEach(() => {
  // No list stalls, however long a test takes.
  vi.useFakeTimers({ toFake: ['performance'] });
});
afterEach(async () => {
  vi.useRealTimers();
  await place.remove();
});

const everything = () => db.read.selectFrom('counters').orderBy('name').select('value');
/** A list of a reader without other lists. */
function list(query = everything()) {
  readers += 1;
  return db.batches(query, `reader ${readers}`)[Symbol.asyncIterator]();
}

async function rest(open: AsyncIterator<readonly { value: number }[]>): Promise<number[]> {
  const seen: number[] = [];
  for (let next = await open.next(); !next.done; next = await open.next()) {
    expect(next.value.length).toBeGreaterThan(0);
    seen.push(...next.value.map(({ value }) => value));
  }
  return seen;
}

/** Counts sessions that see an earlier snapshot of the store. */
const held = () => place.count('backend_xmin is not null');
const nothingHeld = () => vi.waitUntil(async () => (await held()) === 0);

describe('long lists in PostgreSQL', () => {
  it('come whole, in order and in batches, none of them empty (USER-1)', async () => {
    expect(await rest(list())).toEqual(Array.from({ length: total }, (_, value) => value));
    await setCounter(db, '000000', 0);
    for (const count of [0, 1, 199, 200, 201, 400]) {
      expect(await rest(list(everything().where('value', '<', count)))).toHaveLength(count);
    }
    await nothingHeld();
  });

  it('show one moment, whatever is written meanwhile, and hold it no longer than they last (USER-1)', async () => {
    const open = list();
    await open.next();
    expect(await held()).toBe(1);
    await db.transaction((tx) => tx.deleteFrom('counters').where('value', '>=', 10).execute());
    await setCounter(db, 'zzz', 7);
    const seen = await rest(open);
    expect([seen.length, seen.at(-1)]).toEqual([total - 200, total - 1]);
    await nothingHeld();
    expect(await rest(list())).toHaveLength(11);
  });

  it('that no one reads to their end hold nothing, and leave the store whole, however many there are', async () => {
    for (let number = 0; number < 3 * atOnceMax; number += 1) {
      const open = list();
      await open.next();
      await open.return?.();
    }
    await nothingHeld();
    expect(await rest(list())).toHaveLength(total);
  });

  it('503: refuse more than eight at once, and 429: more than four of one reader, until one has ended (ERR-24, ERR-27)', async () => {
    const open = await Promise.all(
      Array.from({ length: ofOneMax }, async () => {
        const one = db.batches(everything(), 'ada')[Symbol.asyncIterator]();
        await one.next();
        return one;
      }),
    );
    const refused = async (reader: string) => {
      const error = await db
        .batches(everything(), reader)
        [Symbol.asyncIterator]()
        .next()
        .catch((reason: unknown) => reason);
      return error instanceof ApiError && error.status;
    };
    expect(await refused('ada')).toBe(429);
    while (open.length < atOnceMax) {
      const one = list();
      await one.next();
      open.push(one);
    }
    expect(await refused('grace')).toBe(503);
    // Readers and writers find a connection meanwhile.
    await setCounter(db, 'meanwhile', 5);
    expect((await db.first(selectCounter, { name: 'meanwhile' }))?.value).toBe(5);
    await open[0]?.return?.();
    expect(await rest(db.batches(everything(), 'ada')[Symbol.asyncIterator]())).toHaveLength(total + 1);
    for (const one of open) await one.return?.();
    await nothingHeld();
  });

  it('that stall give their places and connections to others, and break off (HTTP-41)', async () => {
    const begun = async () => {
      const one = list();
      await one.next();
      return one;
    };
    const stalled: Awaited<ReturnType<typeof begun>>[] = [];
    while (stalled.length < atOnceMax) stalled.push(await begun());
    await expect(begun()).rejects.toMatchObject({ status: 503 });
    vi.advanceTimersByTime(5_000);
    const others = await Promise.all(Array.from({ length: atOnceMax }, begun));
    await expect(begun()).rejects.toMatchObject({ status: 503 });
    for (const one of stalled) await expect(rest(one)).rejects.toThrow('lost its place');
    for (const one of others) expect(await rest(one)).toHaveLength(total - 200);
    await nothingHeld();
  });

  it('that are cut in the middle tell that the store failed, and the next one comes whole (STORE-12)', async () => {
    const open = list();
    await open.next();
    expect(await place.cut('backend_xmin is not null')).toBe(1);
    const error = await rest(open).catch((reason: unknown) => reason);
    expect(isStoreFailure(error)).toBe(true);
    expect(await rest(list())).toHaveLength(total);
  });

  it('whose statement fails in the middle tell it, and take no place any more', async () => {
    const failing = db.read.selectFrom('counters').orderBy('name').select(sql<number>`1 / (700 - value)`.as('value'));
    for (let tries = 0; tries < 2 * atOnceMax; tries += 1) {
      const error = await rest(list(failing)).catch((reason: unknown) => reason);
      expect(error).toMatchObject({ code: '22012' });
      expect(isStoreFailure(error)).toBe(false);
    }
    expect(await rest(list())).toHaveLength(total);
  });
});
