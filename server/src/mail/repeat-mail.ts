import { MailError } from './mail-error.ts';
import { paused } from './mail-pauses.ts';

interface Repeats {
  /** Milliseconds before each further attempt. */
  readonly pausesMs: readonly number[];
  /** Aborted when the time is over. */
  readonly signal: AbortSignal;
}

/**
 * Attempts what a server may refuse for the time being, and attempts it again after each pause where it did. Throws
 * what the last attempt threw, and a refusal rather than that the time was over. Rule: FIT-22.
 */
export async function repeatDeferred<T>(attempt: () => Promise<T>, { pausesMs, signal }: Repeats): Promise<T> {
  let refusal: MailError | null = null;
  for (const pauseMs of [...pausesMs, null]) {
    try {
      return await attempt();
    } catch (error) {
      const isOver = error instanceof MailError && error.kind === 'late' && refusal !== null;
      if (isOver) break;
      if (!(error instanceof MailError && error.isDeferred)) throw error;
      refusal = error;
    }
    if (pauseMs === null || !(await paused(pauseMs, signal))) break;
  }
  throw refusal ?? new MailError('late', 'There was no time left for this mail.');
}
