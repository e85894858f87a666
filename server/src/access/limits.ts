import ipaddr from 'ipaddr.js';
import { type Clock, minute, second, toTimestamp } from '../clock.ts';
import { RefusedError } from '../errors.ts';

/** What is counted, and how often a key may do it in a minute (where `windowsMs` says no other time). High enough for people and scripts that mean well. */
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
  /** Requests to invite people, by person. */
  invite: 60,
  /** Requests for the recovery of a password, by network. */
  recovery: 60,
  /** Recovery mails, by the person who gets them; in the time that the link of each works, so that the last one does. */
  recoveryMail: 3,
  /** Mails with one-time codes, by the person who gets them: each is five more guesses for whoever asked for it. */
  codeMail: 3,
  /** Tokens issued, by service client. */
  serviceToken: 300,
  /** Mails to try the settings out, by person. */
  testMail: 10,
  /** Notices of a changed e-mail, by the person whose it is: that could have been anybody's address. */
  emailNotice: 3,
  /** Refused sign-ins that are recorded, in all: who tries a lot must not fill the audit log. */
  refusedSignIn: 600,
} as const;

/** Counted in another time than a minute. */
const windowsMs: Partial<Record<keyof typeof allowances, number>> = {
  recoveryMail: 20 * minute,
  codeMail: 10 * minute,
};

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
  /** Counts one act and answers whether it is within the allowance, for what is to be left out in silence beyond it. */
  tryCount(what: keyof typeof allowances, key: string): boolean;
  /**
   * Counts a try to sign in as failed until it succeeds, so that many at once are held back like many in a row. Throws
   * `signInBlocked` while the account from this network, or the network, has to wait. Rules: AUTH-43, AUTH-44.
   */
  trySignIn(email: string, network: string): void;
  /** Takes a counted try back, and forgets the account's failures from this network. */
  signInSucceeded(email: string, network: string): void;
  /** Forgets the account's failures from this network, for somebody who proved otherwise whose account it is. */
  forgive(email: string, network: string): void;
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
  readonly #windowMs: number;
  readonly #byKey = new Map<string, { count: number; readonly endsMs: number }>();

  constructor(clock: Clock, what: keyof typeof allowances) {
    this.#clock = clock;
    this.#allowance = allowances[what];
    this.#windowMs = windowsMs[what] ?? minute;
  }

  /** Seconds until the key may go on; 0 while it is within the allowance. */
  count(key: string): number {
    const nowMs = this.#clock.now();
    const known = this.#byKey.get(key);
    // A clock that was set back must not hold anybody back for longer than a window.
    const isOpen = known !== undefined && nowMs < known.endsMs && known.endsMs - nowMs <= this.#windowMs;
    const window = isOpen ? known : { count: 0, endsMs: nowMs + this.#windowMs };
    window.count += 1;
    if (!isOpen) {
      this.#byKey.delete(key);
      this.#byKey.set(key, window);
      forgetOldest(this.#byKey);
    }
    return window.count <= this.#allowance ? 0 : Math.ceil((window.endsMs - nowMs) / second);
  }
}

function refuseTooMany(allowance: number, seconds: number): RefusedError {
  return new RefusedError('tooManyRequests', { params: { seconds }, headers: limitHeaders(allowance, seconds) });
}

interface Failures {
  readonly count: number;
  readonly lastMs: number;
  /** When the one before the last was. */
  readonly earlierMs: number;
  readonly blockedUntilMs: number;
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
    const earlierMs = known?.lastMs ?? nowMs;
    this.#byKey.set(key, { count, lastMs: nowMs, earlierMs, blockedUntilMs: nowMs + blockMs });
    forgetOldest(this.#byKey);
  }

  forget(key: string): void {
    this.#byKey.delete(key);
  }

  /** Takes one counted try back, and the wait that it led to: it was let through, so there was no other. */
  uncount(key: string): void {
    const known = this.#byKey.get(key);
    if (!known) return;
    this.#byKey.set(key, { ...known, count: known.count - 1, lastMs: known.earlierMs, blockedUntilMs: 0 });
  }
}

/** The limits of this process; they hold nobody back while `isOn` is false (`RATE_LIMIT=off`). */
export function limits({ isOn, clock }: { readonly isOn: () => boolean; readonly clock: Clock }): Limits {
  const windows = {
    badCredential: new Windows(clock, 'badCredential'),
    mint: new Windows(clock, 'mint'),
    team: new Windows(clock, 'team'),
    upload: new Windows(clock, 'upload'),
    signInStart: new Windows(clock, 'signInStart'),
    refresh: new Windows(clock, 'refresh'),
    invite: new Windows(clock, 'invite'),
    recovery: new Windows(clock, 'recovery'),
    recoveryMail: new Windows(clock, 'recoveryMail'),
    codeMail: new Windows(clock, 'codeMail'),
    serviceToken: new Windows(clock, 'serviceToken'),
    testMail: new Windows(clock, 'testMail'),
    emailNotice: new Windows(clock, 'emailNotice'),
    refusedSignIn: new Windows(clock, 'refusedSignIn'),
  };
  const accounts = new SlowDown(clock, freeFailures);
  // A network may hold many people who each mistype: it is slowed down later than one account is.
  const networks = new SlowDown(clock, freeFailures * 10);
  const accountKey = (email: string, network: string) => `${email} ${networkOf(network)}`;

  return {
    count: (what, key) => {
      if (!isOn()) return;
      const seconds = windows[what].count(key);
      if (seconds > 0) throw refuseTooMany(allowances[what], seconds);
    },
    tryCount: (what, key) => !isOn() || windows[what].count(key) === 0,
    trySignIn: (email, network) => {
      if (!isOn()) return;
      accounts.admit(accountKey(email, network));
      networks.admit(networkOf(network));
      accounts.count(accountKey(email, network));
      networks.count(networkOf(network));
    },
    signInSucceeded: (email, network) => {
      accounts.forget(accountKey(email, network));
      networks.uncount(networkOf(network));
    },
    forgive: (email, network) => accounts.forget(accountKey(email, network)),
    signInUndecided: (email, network) => {
      accounts.uncount(accountKey(email, network));
      networks.uncount(networkOf(network));
    },
  };
}
