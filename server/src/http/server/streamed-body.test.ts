import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { text as textOfStream } from 'node:stream/consumers';
import fc from 'fast-check';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { Scope } from '../../base/scope.ts';
import { StreamedList } from '../endpoint.ts';
import { streamedBody } from './streamed-body.ts';

/** Batches that say how far they were read, and whether they were ended. */
class Watched {
  given = 0;
  ended = 0;
  readonly list: StreamedList<unknown>;

  constructor(rows: readonly (readonly unknown[] | Error)[]) {
    this.list = new StreamedList(this.#give(rows));
  }

  async *#give(rows: readonly (readonly unknown[] | Error)[]) {
    try {
      for (const batch of rows) {
        if (batch instanceof Error) throw batch;
        this.given += 1;
        yield batch;
      }
    } finally {
      this.ended += 1;
    }
  }
}

/** Scope of a request that continues. */
const scope = new Scope();
const json = (items: unknown) => JSON.stringify(items);
const noFault = (error: unknown) => {
  throw error;
};

async function streamOf(watched: Watched, onFault: (error: unknown) => void = noFault): Promise<Readable> {
  const body = await streamedBody(watched.list, json, { scope: () => scope, onFault });
  if (typeof body === 'string') throw new Error('expected a stream');
  return body;
}

/** More than a stream buffers before it is read. */
const big = Array.from({ length: 1_000 }, (_, at) => `${at}`.padEnd(100));

describe('batchBody', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('is text where there is nothing, or one batch', async () => {
    expect(await streamedBody(new Watched([]).list, json, { scope: () => scope, onFault: noFault })).toBe('[]');
    const one = new Watched([[1, 'a', { b: null }]]);
    expect(await streamedBody(one.list, json, { scope: () => scope, onFault: noFault })).toBe('[1,"a",{"b":null}]');
    expect(one.ended).toBe(1);
  });

  it('is a stream of the same JSON where there are several', async () => {
    const several = new Watched([[1], ['[,]', { a: [] }], [[]], [4]]);
    expect(await textOfStream(await streamOf(several))).toBe('[1,"[,]",{"a":[]},[],4]');
    expect([several.given, several.ended]).toEqual([4, 1]);
  });

  it('is the JSON of all items, whatever the batches are (RUN-9)', async () => {
    const rows = fc.array(fc.array(fc.jsonValue(), { minLength: 1, maxLength: 5 }), { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(rows, async (given) => {
        const body = await streamedBody(new Watched(given).list, json, { scope: () => scope, onFault: noFault });
        expect(typeof body === 'string' ? body : await textOfStream(body)).toBe(JSON.stringify(given.flat()));
      }),
    );
  });

  it('is a record with the items where its frame says, however many there are', async () => {
    const frame = ['{"n":1,"items":[', ']}'] as const;
    for (const given of [[], [[1]], [[1], [2, 3], [4]]]) {
      const body = await streamedBody(new Watched(given).list, json, { scope: () => scope, onFault: noFault, frame });
      const text = typeof body === 'string' ? body : await textOfStream(body);
      expect(JSON.parse(text)).toEqual({ n: 1, items: given.flat() });
    }
  });

  it('ends with the scope of its request, also where that ended before (HTTP-32)', async () => {
    for (const isEarly of [true, false]) {
      const request = new Scope();
      if (isEarly) request.end();
      const watched = new Watched(Array.from({ length: 50 }, () => big));
      const body = await streamedBody(watched.list, json, { scope: () => request, onFault: noFault });
      if (typeof body === 'string') throw new Error('expected a stream');
      request.end();
      await once(body, 'close');
      await vi.waitFor(() => expect(watched.ended).toBe(1));
    }
  });

  it('reads no further than someone takes', async () => {
    const watched = new Watched(Array.from({ length: 50 }, () => big));
    const body = await streamOf(watched);
    body.once('readable', () => {});
    await once(body, 'readable');
    expect(watched.given).toBeLessThan(5);
    body.destroy();
    await once(body, 'close');
  });

  it.each([
    ['first', [new Error('broken')]],
    ['second', [[1], new Error('broken')]],
  ])('throws when the %s batch fails, so that a refusal can be sent', async (_, rows) => {
    const watched = new Watched(rows);
    await expect(streamedBody(watched.list, json, { scope: () => scope, onFault: noFault })).rejects.toThrow('broken');
    expect(watched.ended).toBe(1);
  });

  it.each([
    ['a later batch', new Watched([[1], [2], [3], new Error('broken')]), json],
    [
      'what serializes',
      new Watched([[1], [2], [3], [4]]),
      (items: unknown) => {
        if (JSON.stringify(items) === '[3]') throw new Error('broken');
        return json(items);
      },
    ],
  ])('breaks off when %s fails, and tells of it once', async (_, watched, serialize) => {
    const faults: unknown[] = [];
    const body = await streamedBody(watched.list, serialize, {
      scope: () => scope,
      onFault: (error) => void faults.push(error),
    });
    if (typeof body === 'string') throw new Error('expected a stream');
    await expect(textOfStream(body)).rejects.toThrow('broken');
    expect(faults).toMatchObject([{ message: 'broken' }]);
    expect(watched.ended).toBe(1);
  });

  it.each(['before anything was read', 'in the middle'])('ends the list when the reader goes away %s', async (when) => {
    const watched = new Watched(Array.from({ length: 50 }, () => big));
    const body = await streamOf(watched);
    if (when === 'in the middle') await once(body, 'readable');
    expect(watched.ended).toBe(0);
    body.destroy();
    await once(body, 'close');
    await vi.waitFor(() => expect(watched.ended).toBe(1));
    expect(watched.given).toBeLessThan(5);
  });

  it.each(['reads nothing', 'reads a little'])('is cut off after 60 s while someone %s', async (how) => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const watched = new Watched(Array.from({ length: 50 }, () => big));
    const faults: unknown[] = [];
    const body = await streamOf(watched, (error) => void faults.push(error));
    if (how === 'reads a little') {
      await once(body, 'readable');
      body.read(10);
    }
    vi.advanceTimersByTime(59_999);
    expect([body.destroyed, watched.ended]).toEqual([false, 0]);
    vi.advanceTimersByTime(1);
    expect(body.destroyed).toBe(true);
    await once(body, 'close').catch(() => {});
    await vi.waitFor(() => expect([faults, watched.ended]).toMatchObject([[{ message: /too slowly/ }], 1]));
  });

  it('leaves no timer behind', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const body = await streamOf(new Watched([[1], [2], [3]]));
    expect(vi.getTimerCount()).toBe(1);
    await textOfStream(body);
    expect(vi.getTimerCount()).toBe(0);
    await streamedBody(new Watched([[1]]).list, json, { scope: () => scope, onFault: noFault });
    expect(vi.getTimerCount()).toBe(0);
  });
});

describe('InBatches.map', () => {
  it('makes each item into another, and ends what it reads from when it is stopped', async () => {
    const watched = new Watched([[1, 2], [3], [4]]);
    const mapped = StreamedList.map(watched.list.rows, (item) => `item ${String(item)}`);
    expect((await mapped.next()).value).toEqual(['item 1', 'item 2']);
    expect((await mapped.next()).value).toEqual(['item 3']);
    await mapped.return(undefined);
    expect([watched.given, watched.ended]).toEqual([2, 1]);
  });
});
