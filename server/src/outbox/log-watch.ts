import type { Logger } from 'pino';
import type { Database } from '../db/database.ts';
import { readNewest } from './event-log.ts';

const tickMs = 50;

/** Something that is waited for. */
interface Wait {
  /** Asked now and then whether it is there; must be quick. */
  readonly until: () => boolean;
  /** The longest wait, in milliseconds of the monotonic clock. */
  readonly msMax?: number;
  readonly signal: AbortSignal;
}

/**
 * Notifies those who follow the event log of new commits. Reads the data version at short intervals, and only while a
 * follower waits: that sees the commits of other processes too, and costs writers nothing.
 */
export interface LogWatch {
  /** The last event that has been seen; may be behind the store by some milliseconds. */
  readonly newest: number;
  /** Another number as soon as anything was committed. */
  readonly version: number;
  /** Waits until `until` is true, the time is over or `signal` is aborted; returns whether `until` was true. */
  wait(wait: Wait): Promise<boolean>;
  close(): void;
}

/** Makes the watch of this process. */
export function logWatch(db: Pick<Database, 'read' | 'dataVersion' | 'refreshVersion'>, log: Logger): LogWatch {
  const waiting = new Set<() => void>();
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  let newest = 0;
  let version = 0;
  let seen: number | null = null;

  async function poll(): Promise<void> {
    await db.refreshVersion();
    const present = db.dataVersion();
    if (present === seen) return;
    newest = await readNewest(db.read);
    seen = present;
    version += 1;
  }

  async function tick(): Promise<void> {
    try {
      await poll();
    } catch (error) {
      // A failing store is reported by the requests that need it.
      log.debug({ err: error }, 'the event log could not be read');
    }
    for (const check of waiting) check();
    timer = undefined;
    schedule();
  }

  function schedule(): void {
    if (isClosed || timer || waiting.size === 0) return;
    timer = setTimeout(() => void tick(), tickMs).unref();
  }

  return {
    get newest() {
      return newest;
    },
    get version() {
      return version;
    },
    wait({ until, msMax = Number.POSITIVE_INFINITY, signal }) {
      return new Promise((resolve) => {
        const endMs = performance.now() + msMax;
        const end = () => {
          waiting.delete(check);
          signal.removeEventListener('abort', end);
          resolve(until());
        };
        const check = () => {
          if (isClosed || signal.aborted || until() || performance.now() >= endMs) end();
        };
        waiting.add(check);
        signal.addEventListener('abort', end, { once: true });
        check();
        schedule();
      });
    },
    close() {
      isClosed = true;
      clearTimeout(timer);
      for (const check of waiting) check();
    },
  };
}
