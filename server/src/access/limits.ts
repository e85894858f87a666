import ipaddr from 'ipaddr.js';
import { type IRateLimiterOptions, RateLimiterMemory, RateLimiterRes } from 'rate-limiter-flexible';
import { type Clock, minute, second, toTimestamp } from '../clock.ts';
import { RefusedError } from '../errors.ts';

/** What is counted, and how much of it a key may do in a window. High enough for people and scripts that mean well. */
const allowances = {
  /** Credentials that failed verification, by network. */
  badCredential: { points: 300, duration: 60 },
  /** Tokens made, by person. */
  mint: { points: 300, duration: 60 },
  /** Sign-ins begun, by network. */
  signInStart: { points: 300, duration: 60 },
  /** Refreshes, by person. */
  refresh: { points: 300, duration: 60 },
} as const satisfies Record<string, IRateLimiterOptions>;

/** Failed sign-ins that are free, before each further one doubles the wait. */
const freeFailures = 5;
const blockMsMax = 15 * minute;
const failuresKeptMs = 60 * minute;
const failuresKeptMax = 50_000;

/** The limits that slow callers down. */
export interface Limits {
  /** Counts one act; throws `tooManyRequests` for each beyond the allowance of its window. */
  count(what: keyof typeof allowances, key: string): Promise<void>;
  /**
   * Counts a try to sign in as failed until it succeeds, so that many at once are held back like many in a row. Throws
   * `signInBlocked` while the account from this network, or the network, has to wait. Rules: AUTH-43, AUTH-44.
   */
  trySignIn(email: string, network: string): void;
  /** Takes a counted try back, and forgets the account's failures from this network. */
  signInSucceeded(email: string, network: string): void;
}

/** The part of an address that one customer has: all of IPv4, the first 64 bits of IPv6. */
export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return address;
  const parsed = ipaddr.process(address);
  if (parsed instanceof ipaddr.IPv4) return parsed.toString();
  return `${parsed.parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')}::/64`;
}

/** What a limit tells its caller: `Retry-After` and the `RateLimit-*` fields, in seconds. */
function limitHeaders(points: number, seconds: number): Record<string, string> {
  return {
    'retry-after': String(seconds),
    'ratelimit-limit': String(points),
    'ratelimit-remaining': '0',
    'ratelimit-reset': String(seconds),
  };
}

interface Failures {
  count: number;
  lastMs: number;
  blockedUntilMs: number;
}

/** Failed sign-ins by key, each with an exponentially growing wait, capped at 15 minutes. */
class SlowDown {
  readonly #clock: Clock;
  readonly #free: number;
  readonly #byKey = new Map<string, Failures>();

  constructor(clock: Clock, free: number) {
    this.#clock = clock;
    this.#free = free;
  }

  /** Throws while the key has to wait. */
  admit(key: string): void {
    const until = this.#byKey.get(key)?.blockedUntilMs ?? 0;
    const waitMs = until - this.#clock.now();
    if (waitMs <= 0) return;
    throw new RefusedError('signInBlocked', {
      params: { until: toTimestamp(until) },
      headers: limitHeaders(this.#free, Math.ceil(waitMs / second)),
    });
  }

  count(key: string): void {
    const nowMs = this.#clock.now();
    const known = this.#byKey.get(key);
    const count = known && nowMs - known.lastMs < failuresKeptMs ? known.count + 1 : 1;
    const blockMs = count < this.#free ? 0 : Math.min(second * 2 ** (count - this.#free), blockMsMax);
    this.#byKey.delete(key);
    this.#byKey.set(key, { count, lastMs: nowMs, blockedUntilMs: nowMs + blockMs });
    this.#forgetOldest();
  }

  forget(key: string): void {
    this.#byKey.delete(key);
  }

  /** Takes one counted try back. */
  uncount(key: string): void {
    const known = this.#byKey.get(key);
    if (!known) return;
    const count = known.count - 1;
    this.#byKey.set(key, { ...known, count, blockedUntilMs: count < this.#free ? 0 : known.blockedUntilMs });
  }

  #forgetOldest(): void {
    if (this.#byKey.size <= failuresKeptMax) return;
    const [oldest] = this.#byKey.keys();
    if (oldest !== undefined) this.#byKey.delete(oldest);
  }
}

const noLimits: Limits = {
  count: async () => {},
  trySignIn: () => {},
  signInSucceeded: () => {},
};

/** The limits of this process; none at all with `on: false` (`RATE_LIMIT=off`). */
export function limits({ on, clock }: { readonly on: boolean; readonly clock: Clock }): Limits {
  if (!on) return noLimits;
  const limiters = {
    badCredential: new RateLimiterMemory(allowances.badCredential),
    mint: new RateLimiterMemory(allowances.mint),
    signInStart: new RateLimiterMemory(allowances.signInStart),
    refresh: new RateLimiterMemory(allowances.refresh),
  };
  const accounts = new SlowDown(clock, freeFailures);
  // A network may hold many people who each mistype: it is slowed down later than one account is.
  const networks = new SlowDown(clock, freeFailures * 10);
  const accountKey = (email: string, network: string) => `${email} ${networkOf(network)}`;

  return {
    count: async (what, key) => {
      try {
        await limiters[what].consume(key);
      } catch (error) {
        if (!(error instanceof RateLimiterRes)) throw error;
        const seconds = Math.max(1, Math.ceil(error.msBeforeNext / second));
        throw new RefusedError('tooManyRequests', {
          params: { seconds },
          headers: limitHeaders(allowances[what].points, seconds),
        });
      }
    },
    trySignIn: (email, network) => {
      accounts.admit(accountKey(email, network));
      networks.admit(networkOf(network));
      accounts.count(accountKey(email, network));
      networks.count(networkOf(network));
    },
    signInSucceeded: (email, network) => {
      accounts.forget(accountKey(email, network));
      networks.uncount(networkOf(network));
    },
  };
}
