import type { Logger } from 'pino';
import { hour, minute } from '../base/clock.ts';

/** Milliseconds between two removals of ended data. */
export const pruneEveryMs = hour;
/** Milliseconds between checks whether a removal is due, where several nodes share the work. */
const pollEveryMs = 10 * minute;
const firstMs = minute;

/**
 * Removes data that ended long ago soon after the start and then periodically; a failure is retried the next time.
 * @param removals by name; each returns how much it removed
 * @param claim claims the work of one time for this node alone; `null` where there is no other node. Rule: NODE-6.
 * @returns a function that stops it
 */
export function startPruning(
  removals: Readonly<Record<string, () => Promise<number>>>,
  log: Logger,
  claim: (() => Promise<boolean>) | null = null,
): () => void {
  const isOurs = async () => {
    try {
      return claim === null || (await claim());
    } catch (error) {
      log.warn({ err: error }, 'it could not be found out whether something is to be removed; it will be tried again');
      return false;
    }
  };
  const prune = async () => {
    if (!(await isOurs())) return;
    const removed: Record<string, number> = {};
    for (const [what, remove] of Object.entries(removals)) {
      try {
        removed[what] = await remove();
      } catch (error) {
        log.warn({ err: error, what }, 'expired data could not be removed; it will be retried');
      }
    }
    if (Object.values(removed).some((count) => count > 0)) log.info(removed, 'removed expired data');
  };
  const first = setTimeout(() => void prune(), firstMs).unref();
  const further = setInterval(() => void prune(), claim ? pollEveryMs : pruneEveryMs).unref();
  return () => {
    clearTimeout(first);
    clearInterval(further);
  };
}
