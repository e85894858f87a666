import { setTimeout as pause } from 'node:timers/promises';
import { second } from '../base/clock.ts';

/** Milliseconds before each further attempt at a mail that its server refused for the time being. */
export interface MailPauses {
  /** While a request waits. Rule: FIT-22. */
  readonly waited: readonly number[];
  /** While no request waits: ten minutes in all. Rule: FIT-23. */
  readonly background: readonly number[];
}

const inSeconds = (...seconds: readonly number[]) => seconds.map((each) => each * second);

/** The pauses of a running service. */
export const usualPauses: MailPauses = {
  waited: inSeconds(1, 3, 8, 18),
  background: inSeconds(2, 5, 13, 30, 60, 100, 130, 130, 130),
};

/** Waits; returns `false` as soon as the signal is aborted. */
export async function paused(ms: number, signal: AbortSignal): Promise<boolean> {
  try {
    await pause(ms, undefined, { signal });
    return true;
  } catch (error) {
    if (signal.aborted) return false;
    throw error;
  }
}
