import { describe, expect, it } from 'vitest';
import { TestClock } from '../../test/test-clock.ts';
import { minute, second, toTimestamp } from '../clock.ts';
import { RefusedError } from '../errors.ts';
import { countsInMemory } from './limit-counts.ts';
import { limits, networkOf } from './limits.ts';

const refusalOf = async (act: () => Promise<void>): Promise<RefusedError | null> => {
  try {
    await act();
    return null;
  } catch (error) {
    if (error instanceof RefusedError) return error;
    throw error;
  }
};

describe('networkOf', () => {
  it.each([
    ['10.1.2.3', '10.1.2.3'],
    ['::ffff:10.1.2.3', '10.1.2.3'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:DB8:1:2::99', '2001:db8:1:2::/64'],
    ['::1', '0:0:0:0::/64'],
    ['not an address', 'not an address'],
  ])('takes %s as %s: one customer, one key', (address, network) => {
    expect(networkOf(address)).toBe(network);
  });
});

describe('limits: sign-in slow-down', () => {
  const email = 'ada@example.com';

  it('lets five failures pass, then doubles the wait up to 15 minutes, and says until when (AUTH-43, AUTH-44)', async () => {
    const clock = new TestClock();
    const { trySignIn } = limits({ isOn: () => true, clock, counts: countsInMemory() });
    const waits: number[] = [];
    for (let attempt = 1; attempt <= 18; attempt += 1) {
      const refused = await refusalOf(() => trySignIn(email, '10.0.0.1'));
      const waitMs = Number(refused?.headers['retry-after'] ?? 0) * second;
      const blockedUntil = `[blockedUntil:${toTimestamp(clock.now() + waitMs)}]`;
      expect(refused?.message ?? blockedUntil).toContain(blockedUntil);
      clock.advance(waitMs);
      expect(waitMs === 0 ? null : await refusalOf(() => trySignIn(email, '10.0.0.1'))).toBeNull();
      waits.push(waitMs / second);
    }
    expect(waits).toEqual([0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900]);
  });

  it('counts tries that have not ended yet: many at once are held back like many in a row (AUTH-43)', async () => {
    const { trySignIn } = limits({ isOn: () => true, clock: new TestClock(), counts: countsInMemory() });
    const verdicts = await Promise.all(
      Array.from({ length: 100 }, () => refusalOf(() => trySignIn(email, '10.0.0.1'))),
    );
    expect(verdicts.filter((verdict) => verdict === null)).toHaveLength(5);
  });

  it('holds nobody else back: another network, another account; success forgets (AUTH-43)', async () => {
    const { trySignIn, signInSucceeded } = limits({
      isOn: () => true,
      clock: new TestClock(),
      counts: countsInMemory(),
    });
    for (let failure = 0; failure < 10; failure += 1) await refusalOf(() => trySignIn(email, '10.0.0.1'));
    expect((await refusalOf(() => trySignIn(email, '10.0.0.1')))?.status).toBe(429);
    expect(await refusalOf(() => trySignIn(email, '10.0.0.2'))).toBeNull();
    expect(await refusalOf(() => trySignIn('grace@example.com', '10.0.0.1'))).toBeNull();
    await signInSucceeded(email, '10.0.0.1');
    expect(await refusalOf(() => trySignIn(email, '10.0.0.1'))).toBeNull();
  });

  it('slows a whole network down after fifty failures over many accounts; success is no failure (AUTH-43)', async () => {
    const clock = new TestClock();
    const { trySignIn, signInSucceeded } = limits({ isOn: () => true, clock, counts: countsInMemory() });
    for (let failure = 0; failure < 49; failure += 1) await trySignIn(`user-${failure}@example.com`, '2001:db8::1');
    await trySignIn('right@example.com', '2001:db8::2');
    await signInSucceeded('right@example.com', '2001:db8::2');
    await trySignIn('last@example.com', '2001:db8::3');
    expect((await refusalOf(() => trySignIn('new@example.com', '2001:db8::2')))?.refusal).toBe('signInBlocked');
    clock.advance(15 * minute);
    expect(await refusalOf(() => trySignIn('new@example.com', '2001:db8::2'))).toBeNull();
  });

  it('lets a network with many failures go on signing in right, and forgets them after an hour (AUTH-43)', async () => {
    const clock = new TestClock();
    const { trySignIn, signInSucceeded } = limits({ isOn: () => true, clock, counts: countsInMemory() });
    for (let failure = 0; failure < 60; failure += 1) {
      await trySignIn(`user-${failure}@example.com`, '10.0.0.1');
      clock.advance(failure < 49 ? 0 : 15 * minute);
    }
    for (let right = 0; right < 5; right += 1) {
      expect(await refusalOf(() => trySignIn(`right-${right}@example.com`, '10.0.0.1'))).toBeNull();
      await signInSucceeded(`right-${right}@example.com`, '10.0.0.1');
      clock.advance(10 * minute);
    }
    // An hour and more after the last failure, though not after the last success.
    await trySignIn('wrong@example.com', '10.0.0.1');
    expect(await refusalOf(() => trySignIn('other@example.com', '10.0.0.1'))).toBeNull();
  });

  it('limits nothing when it is off (CONFIG-14)', async () => {
    const off = limits({ isOn: () => false, clock: new TestClock(), counts: countsInMemory() });
    for (let act = 0; act < 1_000; act += 1) {
      await off.count('mint', 'one');
      await off.trySignIn(email, '10.0.0.1');
    }
    expect(await refusalOf(() => off.trySignIn(email, '10.0.0.1'))).toBeNull();
  });
});
