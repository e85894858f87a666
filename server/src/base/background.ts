import { randomInt } from 'node:crypto';
import { setTimeout as pause, setImmediate } from 'node:timers/promises';
import pLimit from 'p-limit';
import type { Logger } from 'pino';
import { second } from './clock.ts';

const concurrent = 4;
const waitingMax = 1_000;
/** What is under way when the service stops gets so long to end, unless less is left. */
const closeMsUsual = 5 * second;

/** What is done once a request is answered: nobody waits for it, and nobody learns from its time what was done. */
export interface Background {
  /**
   * Does something soon, and nothing of it before the answer of this turn is out. A failure is logged once; so is work
   * that is not taken on because too much is waiting.
   * @param what in few words, for the log
   * @param spreadMs it begins after a random time of up to so many milliseconds, so that who asks for something else at
   * once cannot tell by that answer's time what was to be done; 0 without it
   */
  run(what: string, work: () => Promise<void>, spreadMs?: number): void;
  /** Waits a bounded time for what was taken on, and for what comes of that; what has not begun by then is given up. */
  close(msMax?: number): Promise<void>;
}

/** Answers are written at the end of the turn that makes them; what waits for two ends comes after them. */
async function answersOut(): Promise<void> {
  await setImmediate();
  await setImmediate();
}

/** Makes the background of this process. */
export function background(log: Logger): Background {
  const limit = pLimit(concurrent);
  const underWay = new Set<Promise<void>>();

  async function allEnded(): Promise<void> {
    while (underWay.size > 0) await Promise.all(underWay);
  }

  return {
    run(what, work, spreadMs = 0) {
      if (underWay.size >= waitingMax) {
        log.warn({ what }, 'too much is waiting to be done: left out');
        return;
      }
      const begun = answersOut().then(() => (spreadMs === 0 ? undefined : pause(randomInt(spreadMs))));
      const done = begun
        .then(() => limit(work))
        .catch((error: unknown) => log.error({ err: error, what }, 'failed behind a request'))
        .finally(() => underWay.delete(done));
      underWay.add(done);
    },
    close: async (msMax = closeMsUsual) => {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, Math.min(msMax, closeMsUsual));
      });
      await Promise.race([allEnded(), late]);
      clearTimeout(timer);
      if (limit.pendingCount > 0) log.warn({ count: limit.pendingCount }, 'stopped before this was begun');
      // It would find everything closed that it needs.
      limit.clearQueue();
    },
  };
}
