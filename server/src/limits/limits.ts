import ipaddr from 'ipaddr.js';
import type { Principal } from '../access/principal.ts';
import { type Clock, hour, minute, second } from '../base/clock.ts';
import { refuseTooMany } from '../base/errors.ts';
import { type ActWindow, BoundedMap, type LimitCounts, withAct } from './limit-counts.ts';

/**
 * Counted acts, and how often a key may do each in a minute (where `windowsMs` names no other time). High enough for
 * honest users and scripts.
 */
const allowances = {
  /** Credentials that failed verification, by network. */
  badCredential: 300,
  /** Tokens created, by user. */
  mint: 300,
  /** Teams created, by user. */
  team: 60,
  /** Pictures uploaded, by user. */
  upload: 60,
  /** Sign-ins begun, by network. */
  signInStart: 300,
  /** Refreshes, by person, in an hour: each leaves a row for as long as its token could come back. */
  refresh: 300,
  /** Sign-ins that succeeded, by person and network, in an hour. */
  signIn: 300,
  /** Changes of the own password, by person and network, in an hour. */
  passwordChange: 30,
  /** Requests to invite users, by user. */
  invite: 60,
  /** Requests for the recovery of a password, by network. */
  recovery: 60,
  /** Recovery mails, by the user who gets them and the network that asks; in the time that the link of each works. */
  recoveryMail: 3,
  /** Mails with one-time codes, likewise: each is five more guesses for the one who asked for it. */
  codeMail: 3,
  /** Tokens issued, by service client. */
  serviceToken: 300,
  /** Mails that test the settings, by user. */
  testMail: 10,
  /** Notices of a changed e-mail, by user: the address could belong to anyone. */
  emailNotice: 3,
  /** Notices of one kind to one user: more would say nothing new. */
  notice: 5,
  /** Mails to confirm an e-mail, by user: the address could belong to anyone. */
  confirmationMail: 5,
  /** Notices that an administrator left, by the user who did. */
  leaverNotice: 3,
  /** Changes, by member. */
  write: 300,
  /** Changes, by administrator. */
  administratorWrite: 3_000,
  /** Reads that cost (whole lists, searches, lists of members, batches of agents), by member. */
  read: 600,
  /** The same, by administrator. */
  administratorRead: 3_000,
  /** Milliseconds that such reads take, by member. */
  readTime: 5_000,
  /** The same, by administrator. */
  administratorReadTime: 20_000,
  /** Rejected sign-ins that are recorded one by one, by network: many attempts must not fill the audit log. */
  refusedSignIn: 60,
  /** The same, in all. */
  refusedSignInOfAll: 600,
} as const;

/** Counted in another time than a minute. */
const windowsMs: Partial<Record<keyof typeof allowances, number>> = {
  refresh: hour,
  signIn: hour,
  passwordChange: hour,
  recoveryMail: 20 * minute,
  codeMail: 10 * minute,
  confirmationMail: hour,
  notice: 10 * minute,
};

/** What each node counts for itself. */
type OfNode = 'badCredential' | 'read' | 'administratorRead' | 'readTime' | 'administratorReadTime';

/** Acts that are counted for all nodes together. */
export type Act = Exclude<keyof typeof allowances, OfNode>;

/** Whose budget something is taken out of. */
type BudgetOwner = Pick<Principal, 'userId' | 'isAdmin'>;

/** What a caller has of a budget. */
export interface BudgetLeft {
  readonly limit: number;
  readonly remaining: number;
  /** Until all of it is there again. */
  readonly seconds: number;
}

/** The limits that slow callers down. */
export interface Limits {
  /** Counts one act; throws `tooManyRequests` for each beyond the allowance of its window. */
  count(what: Act, key: string): Promise<void>;
  /**
   * Counts one act and answers whether it is within the allowance, for what is to be left out in silence beyond it. Not to
   * be waited for within a transaction.
   * @param account that it counts for, until `forgetActs`; the key is of this account alone then
   */
  tryCount(what: Act, key: string, account?: string): Promise<boolean>;
  /** Forgets the acts that were counted for an account. */
  forgetActs(account: string): Promise<void>;
  /**
   * Counts a credential that failed verification; throws `tooManyRequests` beyond the allowance of the network. Each node
   * counts for itself: verification never writes.
   */
  countBadCredential(network: string): void;
  /**
   * Counts a change that a user makes; throws `tooManyRequests` beyond the budget of a member, or of an administrator.
   * @returns what is left; `null`: limits are off
   */
  countWrite(user: BudgetOwner): Promise<BudgetLeft | null>;
  /**
   * Counts a read that costs, in the same way, but each node for itself: what reads must not write. Throws
   * `tooManyRequests`. Returns what is left; `null`: limits are off.
   */
  countRead(user: BudgetOwner): BudgetLeft | null;
  /** Charges the cost of a read, in further reads; never throws. */
  chargeReads(user: BudgetOwner, reads: number): void;
  /** Throws `tooManyRequests` for a caller who has used up the time for reads; so does `countRead`. */
  requireReadTime(user: BudgetOwner): void;
  /** Counts the time that a read took, in milliseconds; refuses nothing. */
  chargeReadTime(user: BudgetOwner, ms: number): void;
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

/** Seconds until a key may go on; 0 while it is within the allowance. */
function secondsLeft(what: keyof typeof allowances, { count, endsMs }: ActWindow, nowMs: number): number {
  return count <= allowances[what] ? 0 : Math.ceil((endsMs - nowMs) / second);
}

/** Returns what is left in a window. Throws `tooManyRequests` beyond the allowance. */
function requireLeft(what: keyof typeof allowances, window: ActWindow, nowMs: number): BudgetLeft {
  const limit = allowances[what];
  const waitSeconds = secondsLeft(what, window, nowMs);
  if (waitSeconds > 0) throw refuseTooMany(limit, waitSeconds);
  return { limit, remaining: limit - window.count, seconds: Math.ceil((window.endsMs - nowMs) / second) };
}

const allowancesByName = new Map<string, number>(Object.entries(allowances));

/** Returns the free acts of a kind in a window. */
export function allowanceOf(what: string): number {
  return allowancesByName.get(what) ?? 0;
}

/** Dependencies of limits. */
export interface LimitParts {
  /** Limits apply while this is true (`RATE_LIMIT=off` turns them off). */
  readonly isOn: () => boolean;
  readonly clock: Clock;
  /** Of all nodes, or of this process where it is the only one. */
  readonly counts: LimitCounts;
}

/** How the reads of users are counted. */
type ReadCounts = Pick<Limits, 'countRead' | 'chargeReads' | 'requireReadTime' | 'chargeReadTime'>;

/** What counts the reads that cost, and their time, in this process alone. */
function readCounts(isOn: () => boolean, clock: Clock): ReadCounts {
  const reads = new BoundedMap<ActWindow>();
  const times = new BoundedMap<ActWindow>();

  function add(
    counts: BoundedMap<ActWindow>,
    userId: string,
    amount: number,
  ): { readonly window: ActWindow; readonly nowMs: number } {
    const nowMs = clock.now();
    const window = withAct(counts.get(userId), { nowMs, windowMs: minute }, amount);
    counts.set(userId, window);
    return { window, nowMs };
  }

  function requireReadTime({ userId, isAdmin }: BudgetOwner): void {
    if (!isOn()) return;
    const what = isAdmin ? 'administratorReadTime' : 'readTime';
    const { window, nowMs } = add(times, userId, 0);
    requireLeft(what, window, nowMs);
  }

  return {
    countRead: ({ userId, isAdmin }) => {
      if (!isOn()) return null;
      requireReadTime({ userId, isAdmin });
      const { window, nowMs } = add(reads, userId, 1);
      return requireLeft(isAdmin ? 'administratorRead' : 'read', window, nowMs);
    },
    chargeReads: ({ userId }, amount) => {
      if (isOn()) add(reads, userId, amount);
    },
    requireReadTime,
    chargeReadTime: ({ userId }, ms) => {
      if (isOn()) add(times, userId, Math.ceil(ms));
    },
  };
}

/** The limits of the service. */
export function limits({ isOn, clock, counts }: LimitParts): Limits {
  const badCredentials = new BoundedMap<ActWindow>();

  async function counted(what: Act, key: string, account?: string) {
    const nowMs = clock.now();
    const of = account === undefined ? { what, key } : { what, key, account };
    return { window: await counts.countAct(of, { nowMs, windowMs: windowsMs[what] ?? minute }), nowMs };
  }

  async function take(what: Act, key: string): Promise<BudgetLeft | null> {
    if (!isOn()) return null;
    const { window, nowMs } = await counted(what, key);
    return requireLeft(what, window, nowMs);
  }

  async function isWithin(what: Act, key: string, account?: string): Promise<boolean> {
    if (!isOn()) return true;
    const { window, nowMs } = await counted(what, key, account);
    return secondsLeft(what, window, nowMs) === 0;
  }
  return {
    count: async (what, key) => void (await take(what, key)),
    countWrite: ({ userId, isAdmin }) => take(isAdmin ? 'administratorWrite' : 'write', userId),
    ...readCounts(isOn, clock),
    tryCount: isWithin,
    forgetActs: (account) => counts.forgetAccount(account),
    countBadCredential: (network) => {
      if (!isOn()) return;
      const nowMs = clock.now();
      const window = withAct(badCredentials.get(network), { nowMs, windowMs: minute });
      badCredentials.set(network, window);
      requireLeft('badCredential', window, nowMs);
    },
  };
}
