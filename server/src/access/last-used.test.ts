import pino from 'pino';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { TestClock } from '../../test/support/test-clock.ts';
import { minute } from '../base/clock.ts';
import { createMetrics } from '../metrics/metrics.ts';
import { type LastUsed, lastUsed } from './last-used.ts';

describe('lastUsed', () => {
  let clock: TestClock;
  let writes: Map<string, number>[];
  let warnings: string[];
  let isStoreDown: boolean;
  let uses: LastUsed;
  const metrics = createMetrics();

  beforeEach(() => {
    clock = new TestClock(1_000_000);
    writes = [];
    warnings = [];
    isStoreDown = false;
    const log = pino({ level: 'warn', base: null }, { write: (line) => void warnings.push(line) });
    const store = async (given: ReadonlyMap<string, number>) => {
      if (isStoreDown) throw new Error('disk full');
      writes.push(new Map(given));
    };
    uses = lastUsed({ clock, metrics, log, store });
  });
  afterEach(() => uses.close());

  it('writes many uses of many tokens as one, with the latest moment of each (PAT-31)', async () => {
    for (let call = 0; call < 20_000; call += 1) {
      uses.touch(`token-${call % 3}`, clock.now());
      if (call % 1_000 === 0) clock.advance(1);
    }
    await uses.flush();
    expect(writes).toEqual([new Map(['token-0', 'token-1', 'token-2'].map((id) => [id, 1_000_020]))]);
  });

  it('writes one token at most once a minute, another one meanwhile (PAT-31)', async () => {
    uses.touch('a', clock.now());
    await uses.flush();
    clock.advance(minute - 1);
    uses.touch('a', clock.now());
    uses.touch('b', clock.now());
    await uses.flush();
    clock.advance(1);
    await uses.flush();
    await uses.flush();
    expect(writes).toEqual([
      new Map([['a', 1_000_000]]),
      new Map([['b', 1_000_000 + minute - 1]]),
      new Map([['a', 1_000_000 + minute - 1]]),
    ]);
  });

  it('writes at close what the minute held back, and nothing twice (PAT-31, RUN-7)', async () => {
    uses.touch('a', clock.now());
    await uses.flush();
    clock.advance(1_000);
    uses.touch('a', clock.now());
    await uses.flush();
    await uses.close();
    await uses.close();
    expect(writes).toEqual([new Map([['a', 1_000_000]]), new Map([['a', 1_001_000]])]);
  });

  it('keeps what cannot be written, says so, counts it, and writes it later (PAT-31)', async () => {
    isStoreDown = true;
    uses.touch('a', clock.now());
    await expect(uses.flush()).resolves.toBeUndefined();
    expect(warnings.join()).toContain('the last use of tokens could not be written; it will be tried again');
    expect(warnings.join()).toContain('disk full');
    expect((await metrics.expose()).text).toMatch(/latchkey_faults_total\{kind="last-used"\} 1/);
    isStoreDown = false;
    await uses.flush();
    expect(writes).toEqual([new Map([['a', 1_000_000]])]);
  });

  it('loses no use that comes while another one is being written', async () => {
    const seen: number[] = [];
    let release = () => {};
    const store = async (given: ReadonlyMap<string, number>) => {
      await new Promise<void>((resolve) => {
        release = resolve;
      });
      seen.push(given.get('a') ?? 0);
    };
    const slow = lastUsed({ clock, metrics, log: pino({ level: 'silent' }), store });
    slow.touch('a', clock.now());
    const first = slow.flush();
    clock.advance(5);
    slow.touch('a', clock.now());
    release();
    await first;
    const last = slow.close();
    release();
    await last;
    expect(seen).toEqual([1_000_000, 1_000_005]);
  });
});
