import type { Logger } from 'pino';
import { hour, minute } from './clock.ts';

const everyMs = hour;
const firstMs = minute;

/**
 * Removes what ended long ago soon after the start and then now and then; what fails is tried again the next time.
 * @param removals by what they remove; each answers how much that was
 * @returns what stops it
 */
export function startPruning(removals: Readonly<Record<string, () => Promise<number>>>, log: Logger): () => void {
  const prune = async () => {
    const removed: Record<string, number> = {};
    for (const [what, remove] of Object.entries(removals)) {
      try {
        removed[what] = await remove();
      } catch (error) {
        log.warn({ err: error, what }, 'what ended long ago could not be removed; it will be tried again');
      }
    }
    if (Object.values(removed).some((count) => count > 0)) log.info(removed, 'removed what ended long ago');
  };
  const first = setTimeout(() => void prune(), firstMs).unref();
  const further = setInterval(() => void prune(), everyMs).unref();
  return () => {
    clearTimeout(first);
    clearInterval(further);
  };
}
