import { setImmediate } from 'node:timers/promises';
import pino from 'pino';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Json } from '../../test/support/test-app.ts';
import { type AfterResponse, afterResponse } from './after-response.ts';

/** Work that ends on request. */
class Held {
  begun = false;
  isOver = false;
  #resolve = () => {};
  readonly #ended = new Promise<void>((resolve) => {
    this.#resolve = resolve;
  });

  readonly work = async (): Promise<void> => {
    this.begun = true;
    await this.#ended;
    this.isOver = true;
  };

  end(): void {
    this.#resolve();
  }
}

describe('what is done behind requests', () => {
  let lines: Json[];
  let behind: AfterResponse;
  beforeEach(() => {
    lines = [];
    behind = afterResponse(pino({ base: null }, { write: (line) => void lines.push(JSON.parse(line)) }));
  });
  afterEach(() => vi.useRealTimers());

  /** Lets everything go on that can. */
  async function turns(): Promise<void> {
    for (let count = 0; count < 10; count += 1) await setImmediate();
  }
  const held = (count: number) => Array.from({ length: count }, () => new Held());
  const runAll = (works: readonly Held[]) => {
    for (const { work } of works) behind.run('something', work);
  };
  const begun = (works: readonly Held[]) => works.filter((work) => work.begun).length;

  it.each([0, 1, 50])(
    'begins after what is written at the end of this turn, spread over %i ms (PASSWORD-7)',
    async (ms) => {
      const happened: string[] = [];
      behind.run('something', async () => void happened.push('work'), { spreadMs: ms });
      const response = setImmediate().then(() => happened.push('answer'));
      happened.push('handler');
      await response;
      // What has not begun is waited for all the same.
      await behind.close();
      expect(happened).toEqual(['handler', 'answer', 'work']);
    },
  );

  it('is four things at once at most, in the order in which they came', async () => {
    const works = held(6);
    runAll(works);
    await turns();
    expect(works.map((work) => work.begun)).toEqual([true, true, true, true, false, false]);
    works[2]?.end();
    await turns();
    expect(works.map((work) => work.begun)).toEqual([true, true, true, true, true, false]);
    for (const work of works) work.end();
    await behind.close();
    expect(works.every(({ isOver }) => isOver)).toBe(true);
  });

  it('is not held up by mails, however many wait for their server', async () => {
    const [mails, own] = [held(20), held(1)];
    for (const { work } of mails) behind.run('a mail', work, { queue: 'mail' });
    runAll(own);
    await turns();
    expect([begun(mails), begun(own)]).toEqual([4, 1]);
    for (const one of [...mails, ...own]) one.end();
    await behind.close();
    expect(begun(mails)).toBe(20);
  });

  it('leaves out what comes while a thousand things are under way, says so once for each, and goes on afterwards', async () => {
    const works = held(1_000);
    runAll(works);
    const tooMany = held(2);
    runAll(tooMany);
    expect(lines).toMatchObject([
      { level: 40, what: 'something', msg: 'work after responses rejected: the queue is full' },
      { level: 40 },
    ]);
    for (const work of works) work.end();
    await behind.close();
    expect([begun(works), begun(tooMany)]).toEqual([1_000, 0]);
    const later = new Held();
    later.end();
    behind.run('later', later.work);
    await behind.close();
    expect(later.isOver).toBe(true);
    expect(lines).toHaveLength(2);
  });

  it.each([
    ['rejects', () => Promise.reject(new Error('gone wrong'))],
    [
      'throws',
      () => {
        throw new Error('gone wrong');
      },
    ],
  ])('logs what %s once, and goes on with the rest', async (_, work) => {
    const next = new Held();
    behind.run('a thing', work);
    behind.run('the next', next.work);
    next.end();
    await behind.close();
    expect(next.isOver).toBe(true);
    expect(lines).toMatchObject([
      { level: 50, what: 'a thing', msg: 'work after a response failed', err: { message: 'gone wrong' } },
    ]);
  });

  it('is waited for when the service stops, and so is what comes of it (RUN-7)', async () => {
    const [first, second] = [new Held(), new Held()];
    let isClosed = false;
    behind.run('first', async () => {
      await first.work();
      behind.run('second', second.work);
    });
    const closed = behind.close().then(() => {
      isClosed = true;
    });
    await turns();
    expect([first.begun, isClosed]).toEqual([true, false]);
    first.end();
    await turns();
    expect([second.begun, isClosed]).toEqual([true, false]);
    second.end();
    await closed;
    expect([first.isOver, second.isOver]).toEqual([true, true]);
  });

  it('is waited for five seconds and no longer, and what waits then never begins; with nothing to do, not at all (RUN-7)', async () => {
    await behind.close();
    const works = held(6);
    runAll(works);
    await turns();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    let isClosed = false;
    const closed = behind.close().then(() => {
      isClosed = true;
    });
    await vi.advanceTimersByTimeAsync(4_999);
    expect(isClosed).toBe(false);
    await vi.advanceTimersByTimeAsync(1);
    await closed;
    expect(lines).toMatchObject([{ level: 40, count: 2, msg: 'work after responses dropped at shutdown' }]);
    for (const work of works) work.end();
    await turns();
    expect(begun(works)).toBe(4);
  });
});
