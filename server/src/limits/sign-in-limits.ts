import { setTimeout as pause } from 'node:timers/promises';
import { second, toTimestamp } from '../base/clock.ts';
import { ApiError, limitHeaders } from '../base/errors.ts';
import type { LimitKey } from './limit-counts.ts';
import { type LimitParts, networkOf } from './limits.ts';
import { type Failures, waitMsOf, withFailure, withoutFailure } from './slow-down.ts';

/** Failed sign-ins that are free, before each further one doubles the wait. */
const freeFailures = 5;
/** From all networks together. */
const freeFailuresOfAccount = 20;
/** A network may hold many users who each mistype: it is slowed down later than one account is. */
const freeFailuresOfNetwork = freeFailures * 10;
/**
 * Longer than the check of a password takes: while a network or an account waits, all refusals take this long, so that
 * the time does not tell who signed in from a network before.
 */
const usualHeldBackMs = 300;

/** A try to sign in. */
interface SignInTry {
  /** As it was given: there may be no account with it. */
  readonly email: string;
  /** The address of the caller. */
  readonly network: string;
  /** Returns whether this account signed in from this network before; asked only while limits are on. */
  readonly isKnown: () => Promise<boolean>;
  /** Of the session in which the password is asked for again: all networks of it count together. */
  readonly sessionId?: string;
  /** The proof is too long to be guessed: then the attempt is not counted for the account as a whole. */
  readonly isUnguessable?: boolean;
}

/** A try that was let through, counted as failed until it is known how it ended. */
export interface SignInAttempt {
  /** Takes the counted try back, and forgets the account's failures from this network. */
  succeeded(): Promise<void>;
  /** Takes the counted try back, which failed through no fault of the caller's. */
  undecided(): Promise<void>;
  /** Returns what to refuse the try with while network or account have to wait; `null`: the usual way. */
  failed(): Promise<ApiError | null>;
}

/** The limits of signing in. Rules: AUTH-43, AUTH-44, AUTH-70, NODE-4. */
export interface SignInLimits {
  /**
   * Counts a try to sign in as failed until it succeeds, so that many at once are held back like many in a row. Throws
   * `signInBlocked` while the account from this network has to wait, and while the network or the account as a whole has
   * to, unless the account signed in from this network before.
   */
  trySignIn(tried: SignInTry): Promise<SignInAttempt>;
  /** Forgets the account's failures from this network, for a user who proved otherwise whose account it is. */
  forgive(email: string, network: string): Promise<void>;
  /** Ends every wait of an account, and deletes its failures from everywhere. The count of a network stays. */
  clearSlowDown(email: string): Promise<void>;
}

interface Counted {
  readonly key: LimitKey;
  readonly free: number;
}

function ofPair(email: string, network: string): Counted {
  const key = { what: 'account', key: networkOf(network), account: email };
  return { key, free: freeFailures };
}

/** An account from a network that it knows, while the network or the account as a whole waits. */
function ofHeldBack(email: string, network: string): Counted {
  return { key: { what: 'heldBack', key: networkOf(network), account: email }, free: freeFailures };
}

function countedFor({ email, network, sessionId, isUnguessable }: SignInTry): Pick<Counts, 'own' | 'shared'> {
  const ofNetwork = { key: { what: 'network', key: networkOf(network) }, free: freeFailuresOfNetwork };
  const whole = { key: { what: 'wholeAccount', key: '', account: email }, free: freeFailuresOfAccount };
  const ofSession = { key: { what: 'session', key: sessionId ?? '', account: email }, free: freeFailuresOfAccount };
  if (sessionId !== undefined) return { own: [ofPair(email, network), ofSession], shared: [ofNetwork] };
  return { own: [ofPair(email, network)], shared: isUnguessable ? [ofNetwork] : [ofNetwork, whole] };
}

/** The longest wait of some counts. */
interface Wait {
  readonly ms: number;
  readonly free: number;
}

function longestWait(counted: readonly Counted[], known: readonly (Failures | undefined)[], nowMs: number): Wait {
  const waits = counted.map(({ free }, place) => ({ free, ms: waitMsOf(known[place], nowMs) }));
  return waits.reduce((one, other) => (other.ms > one.ms ? other : one), { ms: 0, free: 0 });
}

function blocked({ ms, free }: Wait, nowMs: number): ApiError {
  return new ApiError('signInBlocked', {
    params: { until: toTimestamp(nowMs + ms) },
    headers: limitHeaders(free, Math.ceil(ms / second)),
  });
}

/** The counters of an attempt, and the resulting decision. */
interface Outcome {
  readonly counted: readonly Counted[];
  readonly left: readonly Failures[];
  /** Counters that a success deletes. */
  readonly ofPair: readonly Counted[];
  /** Error of the attempt if its proof is wrong although it was let through. */
  readonly refusal: ApiError | null;
  /** The attempt is rejected at once. */
  readonly isRefused: boolean;
}

/** Counters that apply to an attempt. */
interface Counts {
  /** These hold back everyone. The first is of account and network together. */
  readonly own: readonly [Counted, ...Counted[]];
  /** These hold back those who come from a network that is new to the account. */
  readonly shared: readonly Counted[];
  /** Stands in for all of them while the shared ones hold others back; `null` from a new network. */
  readonly heldBack: Counted | null;
}

/**
 * Decides on an attempt by the known failures. Throws `signInBlocked` where the account's own failures from here block
 * it.
 */
function decide({ own, shared, heldBack }: Counts, known: readonly (Failures | undefined)[], nowMs: number): Outcome {
  const all = [...own, ...shared];
  const ofPair = heldBack ? [own[0], heldBack] : [own[0]];
  if (longestWait(own, known, nowMs).ms > 0) throw blocked(longestWait(all, known, nowMs), nowMs);
  const wait = longestWait(shared, known.slice(own.length), nowMs);
  if (wait.ms === 0) {
    const left = all.map(({ free }, place) => withFailure(known[place], nowMs, free));
    return { counted: all, left, ofPair, refusal: null, isRefused: false };
  }
  const error = blocked(wait, nowMs);
  const before = known[all.length];
  // For the caller there is no difference to a network that is new to the account.
  if (heldBack === null || waitMsOf(before, nowMs) > 0) {
    return { counted: [], left: [], ofPair, refusal: error, isRefused: true };
  }
  return {
    counted: [heldBack],
    left: [withFailure(before, nowMs, heldBack.free)],
    ofPair,
    refusal: error,
    isRefused: false,
  };
}

const free: SignInAttempt = { succeeded: async () => {}, undecided: async () => {}, failed: async () => null };

function keysOf(counted: readonly Counted[]): readonly LimitKey[] {
  return counted.map(({ key }) => key);
}

/** The limits of signing in. */
export function signInLimits({
  isOn,
  clock,
  counts,
  heldBackMs = usualHeldBackMs,
}: LimitParts & { readonly heldBackMs?: number }): SignInLimits {
  async function count(tried: SignInTry): Promise<Outcome> {
    const heldBack = (await tried.isKnown()) ? ofHeldBack(tried.email, tried.network) : null;
    const of: Counts = { ...countedFor(tried), heldBack };
    const all = [...of.own, ...of.shared, ...(heldBack ? [heldBack] : [])];
    let outcome: Outcome | undefined;
    const change = (known: readonly (Failures | undefined)[]) => {
      const made = decide(of, known, clock.now());
      outcome = made;
      return all.map((one, place) => made.left[made.counted.indexOf(one)] ?? known[place]);
    };
    await counts.changeFailures(keysOf(all), change);
    if (outcome === undefined) throw new Error('nothing was counted');
    return outcome;
  }

  /** Forgets some counts, and takes a try back from the others that it was counted by. */
  async function settle({ counted, left }: Outcome, gone: readonly Counted[]): Promise<void> {
    const others = counted.filter((one) => !gone.includes(one));
    const lefts = [...gone.map(() => undefined), ...others.map((one) => left[counted.indexOf(one)])];
    await counts.changeFailures(keysOf([...gone, ...others]), (known) =>
      known.map((one, place) => (place < gone.length ? undefined : withoutFailure(one, lefts[place]))),
    );
  }

  return {
    trySignIn: async (tried) => {
      if (!isOn()) return free;
      const lateMs = performance.now() + heldBackMs;
      const outcome = await count(tried);
      const { refusal: error } = outcome;
      const untilLate = async () => {
        const leftMs = lateMs - performance.now();
        if (leftMs > 0) await pause(leftMs);
      };
      if (error !== null && outcome.isRefused) {
        await untilLate();
        throw error;
      }
      return {
        undecided: () => settle(outcome, []),
        succeeded: () => settle(outcome, outcome.ofPair),
        failed: async () => {
          if (error !== null) await untilLate();
          return error;
        },
      };
    },
    forgive: async (email, network) => {
      if (!isOn()) return;
      const gone = [ofPair(email, network), ofHeldBack(email, network)];
      await counts.changeFailures(keysOf(gone), () => gone.map(() => undefined));
    },
    clearSlowDown: (email) => counts.forgetAccount(email),
  };
}
