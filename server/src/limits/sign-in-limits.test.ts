import { describe, expect, it } from 'vitest';
import { TestClock } from '../../test/support/test-clock.ts';
import { day, hour, minute, second, toTimestamp } from '../base/clock.ts';
import { ApiError } from '../base/errors.ts';
import { countsInMemory } from './limit-counts.ts';
import { type SignInAttempt, signInLimits } from './sign-in-limits.ts';

const email = 'ada@example.com';

interface From {
  readonly email?: string;
  readonly isKnown?: boolean;
  readonly sessionId?: string;
  readonly isUnguessable?: boolean;
}

/** Limits with a clock of their own. */
function desk({ isOn = true }: { readonly isOn?: boolean } = {}) {
  const clock = new TestClock();
  const limits = signInLimits({ isOn: () => isOn, clock, counts: countsInMemory(), heldBackMs: 0 });
  const begin = (network: string, { isKnown = false, ...from }: From = {}) =>
    limits.trySignIn({ email, network, isKnown: async () => isKnown, ...from });
  /** Tries with a wrong proof; returns the refusal, `null` being the usual one. */
  async function wrong(network: string, from: From = {}): Promise<ApiError | null> {
    try {
      return await (await begin(network, from)).failed();
    } catch (error) {
      if (error instanceof ApiError) return error;
      throw error;
    }
  }
  /** Tries with the right proof; returns whether it was let through. */
  async function right(network: string, from: From = {}): Promise<boolean> {
    const attempt: SignInAttempt | null = await begin(network, from).catch(() => null);
    await attempt?.succeeded();
    return attempt !== null;
  }
  async function wrongTimes(count: number, networkOf: (place: number) => string, from: From = {}) {
    const refusals: (ApiError | null)[] = [];
    for (let place = 0; place < count; place += 1) refusals.push(await wrong(networkOf(place), from));
    return refusals.filter((error) => error !== null);
  }
  return { clock, limits, begin, wrong, right, wrongTimes };
}

const elsewhere = (place: number) => `198.51.${Math.floor(place / 250)}.${(place % 250) + 1}`;
/** Another /64 each. */
const rotated = (place: number) => `2001:db8:${(place >> 16).toString(16)}:${(place & 0xffff).toString(16)}::1`;

describe('an account from a network', () => {
  it('lets five failures pass, then doubles the wait up to 15 minutes, and says until when (AUTH-43, AUTH-44)', async () => {
    const { clock, wrong } = desk();
    const waits: number[] = [];
    for (let attempt = 1; attempt <= 18; attempt += 1) {
      const refused = await wrong('10.0.0.1');
      const waitMs = Number(refused?.headers['retry-after'] ?? 0) * second;
      const until = toTimestamp(clock.now() + waitMs);
      const words = `blocked until ${until} [blockedUntil:${until}]`;
      expect(refused?.message ?? words).toContain(words);
      clock.advance(waitMs);
      expect(waitMs === 0 ? null : await wrong('10.0.0.1')).toBeNull();
      waits.push(waitMs / second);
    }
    expect(waits).toEqual([0, 0, 0, 0, 0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900]);
  });

  it('counts tries that have not ended yet: many at once are held back like many in a row (AUTH-43)', async () => {
    const { wrong } = desk();
    const verdicts = await Promise.all(Array.from({ length: 100 }, () => wrong('10.0.0.1')));
    expect(verdicts.filter((verdict) => verdict === null)).toHaveLength(5);
  });

  it('holds back no other network and no other account; success forgets (AUTH-43)', async () => {
    const { wrong, right, wrongTimes, clock } = desk();
    await wrongTimes(10, () => '10.0.0.1');
    expect((await wrong('10.0.0.1'))?.status).toBe(429);
    expect(await wrong('10.0.0.2')).toBeNull();
    expect(await wrong('10.0.0.1', { email: 'grace@example.com' })).toBeNull();
    clock.advance(15 * minute);
    expect(await right('10.0.0.1')).toBe(true);
    expect(await wrong('10.0.0.1')).toBeNull();
  });

  it('a clock that is set back holds no one back for longer than a wait (AUTH-43)', async () => {
    const { wrong, wrongTimes, clock } = desk();
    await wrongTimes(6, () => '10.0.0.1');
    clock.advance(-day);
    expect(await wrong('10.0.0.1')).toBeNull();
    clock.advance(2 * day);
    expect(await wrong('10.0.0.1')).toBeNull();
  });
});

describe('a network', () => {
  it('waits as a whole after fifty failures over many accounts; success is no failure (AUTH-43)', async () => {
    const { clock, wrong, right } = desk();
    for (let failure = 0; failure < 49; failure += 1) {
      await wrong('2001:db8::1', { email: `user-${failure}@example.com` });
    }
    expect(await right('2001:db8::2', { email: 'right@example.com' })).toBe(true);
    await wrong('2001:db8::3', { email: 'last@example.com' });
    expect((await wrong('2001:db8::2', { email: 'new@example.com' }))?.errorName).toBe('signInBlocked');
    clock.advance(15 * minute);
    expect(await wrong('2001:db8::2', { email: 'new@example.com' })).toBeNull();
  });

  it('with many failures goes on signing in right, and they are forgotten after an hour (AUTH-43)', async () => {
    const { clock, wrong, right } = desk();
    for (let failure = 0; failure < 60; failure += 1) {
      await wrong('10.0.0.1', { email: `user-${failure}@example.com` });
      clock.advance(failure < 49 ? 0 : 15 * minute);
    }
    for (let count = 0; count < 5; count += 1) {
      expect(await right('10.0.0.1', { email: `right-${count}@example.com` })).toBe(true);
      clock.advance(10 * minute);
    }
    // An hour and more after the last failure, though not after the last success.
    await wrong('10.0.0.1', { email: 'wrong@example.com' });
    expect(await wrong('10.0.0.1', { email: 'other@example.com' })).toBeNull();
  });

  it('a right password among many wrong ones at the same moment does not end their wait (AUTH-43)', async () => {
    const { begin, wrong } = desk();
    const own = await begin('10.0.0.1', { email: 'mallory@example.com' });
    for (let failure = 0; failure < 60; failure += 1) {
      await wrong('10.0.0.1', { email: `user-${failure}@example.com` });
    }
    await own.succeeded();
    expect((await wrong('10.0.0.1', { email: 'one-more@example.com' }))?.status).toBe(429);
  });

  it('that waits lets those in who signed in from it before, and their guesses count as ever (AUTH-70)', async () => {
    const { clock, wrong, right, wrongTimes } = desk();
    const script = async () => {
      for (let failure = 0; failure < 60; failure += 1) {
        await wrong('10.0.0.1', { email: `user-${failure}@example.com` });
      }
    };
    await script();
    expect(await right('10.0.0.1')).toBe(false);
    expect(await right('10.0.0.1', { isKnown: true })).toBe(true);
    // A wrong proof is answered as for everyone there: nothing tells who signed in from here before.
    const [known, stranger] = [
      await wrong('10.0.0.1', { isKnown: true }),
      await wrong('10.0.0.1', { email: 'nobody@example.com' }),
    ];
    expect([known?.message, known?.headers]).toEqual([stranger?.message, stranger?.headers]);
    // One free guess is used up; four are left, then the right one has to wait, too.
    await wrongTimes(4, () => '10.0.0.1', { isKnown: true });
    expect(await right('10.0.0.1', { isKnown: true })).toBe(false);
    clock.advance(15 * minute);
    // Once the network waits no longer, the two are alike again.
    expect(await wrong('10.0.0.1', { isKnown: true })).toBeNull();
    clock.advance(15 * minute);
    expect(await wrong('10.0.0.1', { email: 'nobody@example.com' })).toBeNull();
  });
});

describe('an account as a whole', () => {
  it.each([
    ['IPv4', elsewhere],
    ['IPv6, each from another /64', rotated],
  ])('waits after twenty failures from many networks: %s (AUTH-70)', async (_, networkOf) => {
    const { wrong, wrongTimes } = desk();
    expect(await wrongTimes(20, networkOf)).toEqual([]);
    const refused = await wrong(networkOf(1_000));
    expect([refused?.errorName, refused?.headers['retry-after'], refused?.headers['ratelimit-limit']]).toEqual([
      'signInBlocked',
      '1',
      '20',
    ]);
    expect(await wrong(networkOf(1_000), { email: 'grace@example.com' })).toBeNull();
  });

  it('gets from many networks no more than four guesses an hour in the end (AUTH-70)', async () => {
    const { clock, wrong } = desk();
    let guesses = 0;
    for (let place = 0; place < 600; place += 1) {
      if ((await wrong(elsewhere(place))) === null) guesses += 1;
      clock.advance(minute);
    }
    // 20 at first, eleven while the waits double, and then one in 15 minutes of ten hours.
    expect(guesses).toBeGreaterThan(20 + 11 + 30);
    expect(guesses).toBeLessThan(20 + 11 + 41);
  });

  it('is open to networks that it signed in from, whose own failures still count (AUTH-70)', async () => {
    const { right, wrong, wrongTimes } = desk();
    await wrongTimes(40, elsewhere);
    expect(await right('203.0.113.9')).toBe(false);
    expect(await right('203.0.113.9', { isKnown: true })).toBe(true);
    expect((await wrong('203.0.113.9', { isKnown: true }))?.message).toBe((await wrong('203.0.113.10'))?.message);
    await wrongTimes(4, () => '203.0.113.9', { isKnown: true });
    expect(await right('203.0.113.9', { isKnown: true })).toBe(false);
    expect(await right('203.0.113.11', { isKnown: true })).toBe(true);
  });

  it('counts failures from its own networks, too: nothing tells where it signed in (AUTH-70)', async () => {
    const [known, unknown] = [desk(), desk()];
    for (const [{ wrong, wrongTimes }, isKnown] of [
      [known, true],
      [unknown, false],
    ] as const) {
      const responses = [...(await wrongTimes(4, () => '10.0.0.1', { isKnown })), ...(await wrongTimes(16, elsewhere))];
      responses.push(...(await wrongTimes(2, () => '203.0.113.9')));
      expect(responses.map(({ headers }) => headers['ratelimit-limit'])).toEqual(['20', '20']);
      expect((await wrong('10.0.0.1', { isKnown }))?.headers['ratelimit-limit']).toBe('20');
    }
  });

  it('is not slowed down by tickets, which cannot be guessed (AUTH-70)', async () => {
    const { wrongTimes, right } = desk();
    expect(await wrongTimes(40, elsewhere, { isUnguessable: true })).toEqual([]);
    await wrongTimes(40, elsewhere);
    expect(await right('203.0.113.9', { isUnguessable: true })).toBe(true);
  });

  it('forgets twenty failures after an hour without one, and all of them when it is cleared (AUTH-70)', async () => {
    const { clock, limits, right, wrong, wrongTimes } = desk();
    await wrongTimes(21, elsewhere);
    clock.advance(hour);
    expect(await right('203.0.113.9')).toBe(true);
    await wrongTimes(30, elsewhere);
    await wrongTimes(9, () => '10.0.0.1', { isKnown: true });
    await wrongTimes(30, elsewhere, { email: 'grace@example.com' });
    await limits.clearSlowDown(email);
    expect(await wrongTimes(4, () => '10.0.0.1')).toEqual([]);
    expect(await right('203.0.113.9')).toBe(true);
    expect((await wrong('203.0.113.9', { email: 'grace@example.com' }))?.status).toBe(429);
  });
});

describe('the password, asked for again in a session', () => {
  it('is not held back by what strangers guessed, and counts over all networks of the session (AUTH-70)', async () => {
    const { right, wrong, wrongTimes } = desk();
    const session = { isKnown: true, sessionId: 'one' };
    await wrongTimes(40, elsewhere);
    expect(await right('203.0.113.9', session)).toBe(true);
    expect(await wrongTimes(20, (place) => `192.0.2.${place}`, session)).toEqual([]);
    expect((await wrong('192.0.2.200', session))?.headers['ratelimit-limit']).toBe('20');
    expect(await right('192.0.2.200', session)).toBe(false);
    expect(await right('192.0.2.200', { ...session, sessionId: 'two' })).toBe(true);
  });
});

describe('the limits of signing in, when they are off', () => {
  it('hold nothing back (CONFIG-14)', async () => {
    const { right, wrongTimes } = desk({ isOn: false });
    expect(await wrongTimes(1_000, () => '10.0.0.1')).toEqual([]);
    expect(await right('10.0.0.1')).toBe(true);
  });
});
