import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { RefusedError } from '../base/errors.ts';
import { heldNow } from '../base/shares.ts';
import { ListPlaces } from './list-places.ts';

const max = 8;

describe('places of long lists (HTTP-40)', () => {
  let places: ListPlaces;
  let ended: string[];
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['performance'] });
    places = new ListPlaces(max);
    ended = [];
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  async function* numbers(reader: string) {
    try {
      for (let number = 0; number < 1_000; number += 1) yield [number];
    } finally {
      ended.push(reader);
    }
  }

  async function begin(reader: string) {
    const list = places.read(reader, () => numbers(reader));
    await list.next();
    return list;
  }
  const begun = (reader: string, count: number) => Promise.all(Array.from({ length: count }, () => begin(reader)));
  const statusOf = (reader: string) =>
    begin(reader).then(
      async (list) => {
        await list.return(undefined);
        return 200;
      },
      (error: unknown) => (error instanceof RefusedError ? error.status : error),
    );

  it('are four for one caller while half of them are free, and then one', async () => {
    const lists = [...(await begun('ada', 4))];
    expect(await statusOf('ada')).toBe(429);
    lists.push(await begin('grace'));
    expect(await statusOf('grace')).toBe(429);
    expect(await statusOf('mary')).toBe(200);
    for (const list of lists) await list.return(undefined);
    expect(heldNow().get('lists') ?? 0).toBe(0);
  });

  it('go to somebody else when nothing was taken of a list for three seconds, first from whoever has most', async () => {
    const lists = await begun('ada', 4);
    for (const reader of ['b', 'c', 'd', 'e']) lists.push(await begin(reader));
    expect(await statusOf('grace')).toBe(503);
    vi.advanceTimersByTime(2_000);
    const [, ...others] = lists;
    await lists[0]?.next();
    vi.advanceTimersByTime(1_500);
    const grace = await begin('grace');
    expect(ended).toEqual(['ada']);
    expect((await lists[0]?.next())?.done).toBe(false);
    await expect(others[0]?.next()).rejects.toThrow('read too slowly');
    await grace.return(undefined);
    for (const list of lists) await list.return(undefined);
    expect(ended).toHaveLength(9);
    expect(heldNow().get('lists') ?? 0).toBe(0);
  });

  it('are not taken from those who read on', async () => {
    const lists: Awaited<ReturnType<typeof begin>>[] = [];
    for (const reader of ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']) lists.push(await begin(reader));
    for (let seconds = 0; seconds < 10; seconds += 2) {
      vi.advanceTimersByTime(2_000);
      for (const list of lists) expect((await list.next()).done).toBe(false);
    }
    expect(await statusOf('grace')).toBe(503);
    for (const list of lists) await list.return(undefined);
  });
});
