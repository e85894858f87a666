import { randomInt } from 'node:crypto';
import { setTimeout as pause, setImmediate } from 'node:timers/promises';
import pLimit from 'p-limit';
import type { Logger } from 'pino';
import { second } from './clock.ts';

const concurrent = 4;
const waitingMax = 1_000;
/** Milliseconds for running work to end when the service stops, unless less time is left. */
const closeMsUsual = 5 * second;

/** Kinds of work, each with a queue of its own: what waits for other machines holds up no records. */
const queues = ['own', 'mail'] as const;

interface AfterResponseOptions {
  /**
   * Random delay of up to this many milliseconds, so that the response time of another request cannot reveal the work;
   * default: 0
   */
  readonly spreadMs?: number;
  /** Default: `own`. */
  readonly queue?: (typeof queues)[number];
}

/** Work that runs after the response: no request waits for it, and response times reveal nothing about it. */
export interface AfterResponse {
  /**
   * Runs work soon, and not before the responses of this turn are sent. A failure is logged once; so is work that is
   * rejected because too much is waiting.
   * @param what in few words, for the log
   */
  run(what: string, work: () => Promise<void>, options?: AfterResponseOptions): void;
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
  const limits = { own: pLimit(concurrent), mail: pLimit(concurrent) };
  const underWay = { own: new Set<Promise<void>>(), mail: new Set<Promise<void>>() };

  async function allEnded(): Promise<void> {
    const all = () => queues.flatMap((queue) => [...underWay[queue]]);
    while (all().length > 0) await Promise.all(all());
  }

  return {
    run(what, work, { spreadMs = 0, queue = 'own' } = {}) {
      const waiting = underWay[queue];
      if (waiting.size >= waitingMax) {
        log.warn({ what }, 'work after responses rejected: the queue is full');
        return;
      }
      const begun = responsesSent().then(() => (spreadMs === 0 ? undefined : pause(randomInt(spreadMs))));
      const done = begun
        .then(() => limits[queue](work))
        .catch((error: unknown) => log.error({ err: error, what }, 'work after a response failed'))
        .finally(() => waiting.delete(done));
      waiting.add(done);
    },
    close: async (msMax = closeMsUsual) => {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, Math.min(msMax, closeMsUsual));
      });
      await Promise.race([allEnded(), late]);
      clearTimeout(timer);
      const count = limits.own.pendingCount + limits.mail.pendingCount;
      if (count > 0) log.warn({ count }, 'work after responses dropped at shutdown');
      // It would find everything closed that it needs.
      for (const queue of queues) limits[queue].clearQueue();
    },
  };
}
