import { setImmediate } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { ApiError } from '../base/errors.ts';
import { currentCounts } from '../base/keyed-counter.ts';
import { readQueue } from './read-queue.ts';

describe('reads that cost (HTTP-38)', () => {
  it('begin one in a turn, so that others are answered in between', async () => {
    const { run } = readQueue();
    const seen = { turn: 0, isOver: false };
    const turns = (async () => {
      while (!seen.isOver) {
        await setImmediate();
        seen.turn += 1;
      }
    })();
    const begun = await Promise.all(Array.from({ length: 10 }, () => run('ada', async () => seen.turn)));
    seen.isOver = true;
    await turns;
    expect(new Set(begun).size).toBe(10);
  });

  it('take turns by caller: who asks once does not wait for all of someone else', async () => {
    const { run } = readQueue();
    const order: string[] = [];
    const note = (who: string) => run(who, async () => void order.push(who));
    await Promise.all([...Array.from({ length: 10 }, () => note('ada')), note('grace')]);
    expect(order.indexOf('grace')).toBeLessThan(3);
  });

  it('429: more than 128 of one caller at once, and nothing to others', async () => {
    const { run } = readQueue();
    const tried = await Promise.allSettled(Array.from({ length: 200 }, () => run('ada', async () => {})));
    expect(tried.filter(({ status }) => status === 'fulfilled')).toHaveLength(128);
    const reasons: unknown[] = tried.flatMap((one) => (one.status === 'rejected' ? [one.reason] : []));
    expect(reasons.every((reason) => reason instanceof ApiError && reason.status === 429)).toBe(true);
    await run('ada', async () => {});
    expect(currentCounts().get('reads') ?? 0).toBe(0);
  });

  it('give their place back when they fail', async () => {
    const { run } = readQueue();
    for (let tries = 0; tries < 20; tries += 1) {
      await expect(run('ada', () => Promise.reject(new Error('no')))).rejects.toThrow('no');
    }
    expect(await Promise.all(Array.from({ length: 40 }, (_, place) => run('ada', async () => place)))).toHaveLength(40);
    expect(currentCounts().get('reads') ?? 0).toBe(0);
  });
});
