import { minute, second } from '../base/clock.ts';

/** The longest wait there is, in milliseconds. */
const blockMsMax = 15 * minute;
const failuresKeptMs = 60 * minute;

/** The failed sign-ins that are counted together. Times are in milliseconds since 1970. */
export interface Failures {
  readonly count: number;
  readonly lastMs: number;
  /** Time of the one before the last. */
  readonly earlierMs: number;
  readonly blockedUntilMs: number;
}

/** Returns the milliseconds that the next attempt has to wait; 0: none. */
export function waitMsOf(known: Failures | undefined, nowMs: number): number {
  const waitMs = (known?.blockedUntilMs ?? 0) - nowMs;
  // More than any wait there is: the clock was set back.
  return waitMs > blockMsMax ? 0 : Math.max(0, waitMs);
}

/** One more failure: beyond `free` of them each doubles the wait, up to 15 minutes. Rule: AUTH-43. */
export function withFailure(known: Failures | undefined, nowMs: number, free: number): Failures {
  const count = known && nowMs - known.lastMs < failuresKeptMs ? known.count + 1 : 1;
  const blockMs = count < free ? 0 : Math.min(second * 2 ** (count - free), blockMsMax);
  return { count, lastMs: nowMs, earlierMs: known?.lastMs ?? nowMs, blockedUntilMs: nowMs + blockMs };
}

/**
 * Undoes one counted attempt, and the wait that it led to. Attempts that were counted after it keep their wait: a right
 * password among many wrong ones at the same time must not end the wait of those.
 * @param mine the failures that the attempt left
 */
export function withoutFailure(known: Failures | undefined, mine: Failures | undefined): Failures | undefined {
  if (known === undefined || known.count <= 1) return undefined;
  const isLast = known.count === mine?.count && known.lastMs === mine.lastMs;
  return isLast
    ? { ...known, count: known.count - 1, lastMs: known.earlierMs, blockedUntilMs: 0 }
    : { ...known, count: known.count - 1 };
}
