import pino from 'pino';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { hour, minute } from '../base/clock.ts';
import { startPruning } from './pruning.ts';

describe('startPruning', () => {
  let removed: string[] = [];
  let lines: string[] = [];
  let stop = () => {};
  const log = pino({ base: null }, { write: (line) => void lines.push(line) });
  beforeEach(() => {
    vi.useFakeTimers();
    [removed, lines] = [[], []];
  });
  afterEach(() => {
    stop();
    vi.useRealTimers();
  });

  const remove = (what: string, outcome: () => number) => async () => {
    removed.push(what);
    return outcome();
  };
  const both = { one: remove('one', () => 2), other: remove('other', () => 0) };

  it('removes soon after the start and then once an hour, until it is stopped', async () => {
    stop = startPruning(both, log);
    await vi.advanceTimersByTimeAsync(minute);
    expect(removed).toEqual(['one', 'other']);
    await vi.advanceTimersByTimeAsync(hour);
    expect(removed).toHaveLength(4);
    stop();
    await vi.advanceTimersByTimeAsync(3 * hour);
    expect(removed).toHaveLength(4);
  });

  it('goes on with the next where one fails, and says so', async () => {
    const failing = remove('failing', () => {
      throw new Error('gone');
    });
    stop = startPruning({ failing, ...both }, log);
    await vi.advanceTimersByTimeAsync(minute);
    expect(removed).toEqual(['failing', 'one', 'other']);
    expect(lines.join('')).toContain('"what":"failing"');
  });

  it('removes nothing while it is another node that does, and looks again several times an hour (NODE-6)', async () => {
    const claims: (() => boolean)[] = [
      () => false,
      () => {
        throw new Error('gone');
      },
      () => true,
    ];
    let asked = 0;
    stop = startPruning(both, log, async () => {
      asked += 1;
      return claims.shift()?.() ?? false;
    });
    await vi.advanceTimersByTimeAsync(minute);
    expect([asked, removed]).toEqual([1, []]);
    await vi.advanceTimersByTimeAsync(9 * minute);
    expect([asked, removed]).toEqual([2, []]);
    expect(lines.join('')).toContain('gone');
    await vi.advanceTimersByTimeAsync(10 * minute);
    expect([asked, removed]).toEqual([3, ['one', 'other']]);
    await vi.advanceTimersByTimeAsync(hour);
    expect([asked, removed.length]).toEqual([9, 2]);
  });
});
