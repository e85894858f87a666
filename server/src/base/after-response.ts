import { randomInt } from 'node:crypto';
import { setTimeout as pause, setImmediate } from 'node:timers/promises';
import pLimit from 'p-limit';
import type { Logger } from 'pino';
import { second } from './clock.ts';

const concurrent = 4;
const waitingMax = 1_000;
/** Milliseconds for running work to end when the service stops, unless less time is left. */
const closeMsUsual = 5 * second;

/** Work that runs after the response: no request waits for it, and response times reveal nothing about it. */
export interface AfterResponse {
  /**
   * Runs work soon, and not before the responses of this turn are sent. A failure is logged once; so is work that is
   * rejected because too much is waiting.
   * @param what in few words, for the log
   * @param spreadMs random delay of up to this many milliseconds, so that the response time of another request cannot
   * reveal the work; 0 without it
   */
  run(what: string, work: () => Promise<void>, spreadMs?: number): void;
  /** Waits a bounded time for running work and its consequences; work that has not begun by then is dropped. */
  close(msMax?: number): Promise<void>;
}

/** Responses are written at the end of their turn; work that waits for two turns comes after them. */
async function responsesSent(): Promise<void> {
  await setImmediate();
  await setImmediate();
}

/** Makes the background of this process. */
export function afterResponse(log: Logger): AfterResponse {
  const limit = pLimit(concurrent);
  const underWay = new Set<Promise<void>>();

  async function allEnded(): Promise<void> {
    while (underWay.size > 0) await Promise.all(underWay);
  }

  return {
    run(what, work, spreadMs = 0) {
      if (underWay.size >= waitingMax) {
        log.warn({ what }, 'work after responses rejected: the queue is full');
        return;
      }
      const begun = responsesSent().then(() => (spreadMs === 0 ? undefined : pause(randomInt(spreadMs))));
      const done = begun
        .then(() => limit(work))
        .catch((error: unknown) => log.error({ err: error, what }, 'work after a response failed'))
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
      if (limit.pendingCount > 0) log.warn({ count: limit.pendingCount }, 'work after responses dropped at shutdown');
      // It would find everything closed that it needs.
      limit.clearQueue();
    },
  };
}
