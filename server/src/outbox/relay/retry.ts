import { randomInt } from 'node:crypto';
import { day, hour, minute, second } from '../../base/clock.ts';

/** Pauses and limits for retrying after failures. */
export interface RetryPlan {
  /** Returns the pause after a number of failures in a row, 1 for the first. */
  pauseMs(attempts: number): number;
  /** No pause is longer. */
  readonly pauseMsMax: number;
  /** Disables the destination after failing for this long; infinite for never. */
  readonly disableAfterMs: number;
  /**
   * But not before this many failures in a row: while the service was stopped, or after its clock was set forward,
   * nothing was tried. Absent: the time alone decides.
   */
  readonly disableAfterAttempts?: number;
}

/** Returns whether a destination has failed for so long and so often that it is to be disabled. */
export function isToBeDisabled(
  { disableAfterMs, disableAfterAttempts = 0 }: RetryPlan,
  { failingMs, attempts }: { readonly failingMs: number; readonly attempts: number },
): boolean {
  return failingMs >= disableAfterMs && attempts >= disableAfterAttempts;
}

/** Up to a tenth more, so that what failed together is not tried again together. */
function spread(ms: number): number {
  return ms + randomInt(Math.ceil(ms / 10) + 1);
}

const brokerPauseMsMax = 5 * second;

/** A broker is the operator's own: it is waited for as long as it takes. Rules: EVENT-17, EVENT-23. */
export const brokerRetry: RetryPlan = {
  pauseMs: (attempts) => spread(Math.min(brokerPauseMsMax, 100 * 2 ** Math.min(attempts, 10))),
  pauseMsMax: 2 * brokerPauseMsMax,
  disableAfterMs: Number.POSITIVE_INFINITY,
};

const webhookPauses = [5 * second, 30 * second, 2 * minute, 10 * minute, 30 * minute];

/** Retry plan for webhooks, which others run: quickly at first, then every hour, for a day. Rule: EVENT-26. */
export const webhookRetry: RetryPlan = {
  pauseMs: (attempts) => spread(webhookPauses[attempts - 1] ?? hour),
  pauseMsMax: 2 * hour,
  disableAfterMs: day,
  disableAfterAttempts: 10,
};
