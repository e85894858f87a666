import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { second } from '../base/clock.ts';
import { ApiError } from '../base/errors.ts';
import { currentCounts } from '../base/keyed-counter.ts';
import { ListPlaces } from './list-places.ts';

const max = 8;
const listsInUse = () => currentCounts().get('lists') ?? 0;

describe('places of long lists (HTTP-41)', () => {
  let places: ListPlaces;
  let ended: string[];
  let inUse: number;
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['performance'] });
    places = new ListPlaces({ max });
    ended = [];
    inUse = listsInUse();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  type List = AsyncGenerator<readonly number[]>;

  async function* numbers(reader: string): List {
    try {
      for (let number = 0; number < 5; number += 1) yield [number];
    } finally {
      ended.push(reader);
    }
  }

  async function begin(reader: string): Promise<List> {
    const list = places.read(reader, () => numbers(reader));
    await list.next();
    return list;
  }
  async function beginEach(...readers: readonly string[]): Promise<List[]> {
    const lists: List[] = [];
    for (const reader of readers) lists.push(await begin(reader));
    return lists;
  }
  async function statusOf(reader: string): Promise<unknown> {
    try {
      await (await begin(reader)).return(undefined);
      return 200;
    } catch (error) {
      return error instanceof ApiError ? error.status : error;
    }
  }
  async function rest(list: List): Promise<number> {
    let count = 0;
    for await (const batch of list) count += batch.length;
    return count;
  }
  const lost = expect.objectContaining({ message: expect.stringContaining('lost its place') });
  /** Ends all lists; afterwards nothing of them is in use. */
  async function endAll(lists: readonly List[]): Promise<void> {
    for (const list of lists) await list.return(undefined);
    expect(listsInUse()).toBe(inUse);
  }

  it('go to who finds none once nothing was taken of a list for five seconds, first from whoever has most', async () => {
    const lists = await beginEach('ada', 'ada', 'ada', 'grace', 'grace', 'b', 'c', 'd');
    vi.advanceTimersByTime(5 * second - 1);
    expect(await statusOf('mary')).toBe(503);
    expect(ended).toEqual([]);
    vi.advanceTimersByTime(1);
    lists.push(await begin('mary'));
    expect(ended).toEqual(['ada']);
    const [first, other] = lists;
    await expect(first?.next()).rejects.toEqual(lost);
    expect((await other?.next())?.done).toBe(false);
    await endAll(lists);
  });

  it('stay with who reads on, however slowly, and are left alone while there are others', async () => {
    const lists = await beginEach('a', 'b', 'c', 'd', 'e', 'f', 'g');
    vi.advanceTimersByTime(60 * second);
    lists.push(await begin('h'));
    expect(ended).toEqual([]);
    for (let times = 0; times < 3; times += 1) {
      for (const list of lists) await list.next();
      vi.advanceTimersByTime(4 * second);
      expect(await statusOf('mary')).toBe(503);
    }
    expect(await Promise.all(lists.slice(0, 7).map(rest))).toEqual(Array(7).fill(1));
    await endAll(lists);
  });

  it('go to no one who has as many already, and nobody has a fifth', async () => {
    const lists = await beginEach('ada', 'ada', 'ada', 'ada', 'grace', 'grace', 'b', 'b');
    vi.advanceTimersByTime(5 * second);
    expect(await statusOf('ada')).toBe(429);
    // More than her two have: ada alone.
    lists.push(await begin('grace'));
    expect([ended, await statusOf('grace')]).toEqual([['ada'], 503]);
    lists.push(await begin('mary'));
    expect(ended).toEqual(['ada', 'ada']);
    await endAll(lists);
  });

  it('of lists that all stall go to as many others at once, each to one, and no list is taken for whole', async () => {
    const stalled = await beginEach('ada', 'ada', 'ada', 'ada', 'grace', 'grace', 'grace', 'grace');
    vi.advanceTimersByTime(5 * second);
    const readers = Array.from({ length: max + 2 }, (_, number) => `reader ${number}`);
    const begun = await Promise.allSettled(readers.map(begin));
    expect(begun.map(({ status }) => status)).toEqual([...Array(max).fill('fulfilled'), 'rejected', 'rejected']);
    const outcomes = await Promise.all(stalled.map((list) => rest(list).catch((error: unknown) => error)));
    expect(outcomes).toEqual(Array(max).fill(lost));
    await endAll(begun.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : [])));
  });

  it('of a list that is read on just while it loses its place tell it', async () => {
    const lists = await beginEach('ada', 'ada', 'b', 'c', 'd', 'e', 'f', 'g');
    vi.advanceTimersByTime(5 * second);
    const taken = begin('mary');
    await expect(lists[0]?.next()).rejects.toEqual(lost);
    lists.push(await taken);
    await endAll(lists);
  });

  it('of lists that overlap for too long: one that stalls ends for the gap that is due', async () => {
    places = new ListPlaces({ max, withoutGapMs: 60 * second });
    const [first, last] = await beginEach('ada', 'grace');
    vi.advanceTimersByTime(60 * second + 1);
    await last?.next();
    expect(await statusOf('mary')).toBe(503);
    expect(ended).toEqual(['ada']);
    await expect(first?.next()).rejects.toEqual(lost);
    vi.advanceTimersByTime(5 * second);
    expect(await statusOf('mary')).toBe(200);
    expect(ended).toEqual(['ada', 'grace', 'mary']);
  });
});
