import ipaddr from 'ipaddr.js';
import { type Clock, minute, second, toTimestamp } from '../clock.ts';
import { RefusedError } from '../errors.ts';

const windowMs = minute;

/** What is counted, and how often a key may do it in a minute. High enough for people and scripts that mean well. */
const allowances = {
  /** Credentials that failed verification, by network. */
  badCredential: 300,
  /** Tokens made, by person. */
  mint: 300,
  /** Teams made, by person. */
  team: 60,
  /** Pictures uploaded, by person. */
  upload: 60,
  /** Sign-ins begun, by network. */
  signInStart: 300,
  /** Refreshes, by person. */
  refresh: 300,
} as const;

/** How many keys are remembered of each thing counted; the oldest are forgotten first. */
const keysMax = 50_000;

/** Failed sign-ins that are free, before each further one doubles the wait. */
const freeFailures = 5;
const blockMsMax = 15 * minute;
const failuresKeptMs = 60 * minute;

/** The limits that slow callers down. */
export interface Limits {
  /** Counts one act; throws `tooManyRequests` for each beyond the allowance of its window. */
  count(what: keyof typeof allowances, key: string): void;
  /**
   * Counts a try to sign in as failed until it succeeds, so that many at once are held back like many in a row. Throws
   * `signInBlocked` while the account from this network, or the network, has to wait. Rules: AUTH-43, AUTH-44.
   */
  trySignIn(email: string, network: string): void;
  /** Takes a counted try back, and forgets the account's failures from this network. */
  signInSucceeded(email: string, network: string): void;
  /** Takes a counted try back that failed through no fault of the caller's. */
  signInUndecided(email: string, network: string): void;
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

/** Forgets what was remembered first, where there is too much. */
function forgetOldest(byKey: Map<string, unknown>): void {
  if (byKey.size <= keysMax) return;
  const [oldest] = byKey.keys();
  if (oldest !== undefined) byKey.delete(oldest);
}

/** Counts acts by key, in windows that begin with a key's first act. */
class Windows {
  readonly #clock: Clock;
  readonly #allowance: number;
  readonly #byKey = new Map<string, { count: number; readonly endsMs: number }>();

  constructor(clock: Clock, allowance: number) {
    this.#clock = clock;
    this.#allowance = allowance;
  }

  count(key: string): void {
    const nowMs = this.#clock.now();
    const known = this.#byKey.get(key);
    // A clock that was set back must not hold anybody back for longer than a window.
    const isOpen = known !== undefined && nowMs < known.endsMs && known.endsMs - nowMs <= windowMs;
    const window = isOpen ? known : { count: 0, endsMs: nowMs + windowMs };
    window.count += 1;
    if (!isOpen) {
      this.#byKey.delete(key);
      this.#byKey.set(key, window);
      forgetOldest(this.#byKey);
    }
    if (window.count <= this.#allowance) return;
    const seconds = Math.ceil((window.endsMs - nowMs) / second);
    throw new RefusedError('tooManyRequests', {
      params: { seconds },
      headers: limitHeaders(this.#allowance, seconds),
    });
  }
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
    // More than any wait there is: the clock was set back.
    if (waitMs <= 0 || waitMs > blockMsMax) return;
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
    forgetOldest(this.#byKey);
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
}

const noLimits: Limits = {
  count: () => {},
  trySignIn: () => {},
  signInSucceeded: () => {},
  signInUndecided: () => {},
};

/** The limits of this process; none at all with `on: false` (`RATE_LIMIT=off`). */
export function limits({ on, clock }: { readonly on: boolean; readonly clock: Clock }): Limits {
  if (!on) return noLimits;
  const windows = {
    badCredential: new Windows(clock, allowances.badCredential),
    mint: new Windows(clock, allowances.mint),
    team: new Windows(clock, allowances.team),
    upload: new Windows(clock, allowances.upload),
    signInStart: new Windows(clock, allowances.signInStart),
    refresh: new Windows(clock, allowances.refresh),
  };
  const accounts = new SlowDown(clock, freeFailures);
  // A network may hold many people who each mistype: it is slowed down later than one account is.
  const networks = new SlowDown(clock, freeFailures * 10);
  const accountKey = (email: string, network: string) => `${email} ${networkOf(network)}`;

  return {
    count: (what, key) => windows[what].count(key),
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
    signInUndecided: (email, network) => {
      accounts.uncount(accountKey(email, network));
      networks.uncount(networkOf(network));
    },
  };
}
