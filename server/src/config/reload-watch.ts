import type { Logger } from 'pino';
import { second } from '../base/clock.ts';
import { readCounter } from '../db/counters.ts';
import type { Database } from '../db/database.ts';
import type { LiveConfig } from './live-config.ts';

const pollEveryMs = second;

interface WatchParts {
  readonly db: Pick<Database, 'read' | 'refreshVersion' | 'dataVersion'>;
  readonly live: Pick<LiveConfig, 'reload'>;
  readonly log: Logger;
}

/**
 * Reloads the configuration of this node within about a second after any node was asked to. A wrong one is logged and
 * changes nothing here. Rules: NODE-5, CONFIG-27.
 * @returns a function that stops it
 */
export async function watchReloads({ db, live, log }: WatchParts): Promise<() => void> {
  let known = await readCounter(db.read, 'reload');
  let mark: number | null = null;
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;

  async function poll(): Promise<void> {
    await db.refreshVersion();
    const present = db.dataVersion();
    if (present === mark) return;
    const count = await readCounter(db.read, 'reload');
    mark = present;
    if (count === known || isStopped) return;
    known = count;
    try {
      live.reload();
      log.info('configuration reloaded, as requested on another node');
    } catch (error) {
      log.error({ reason: error instanceof Error ? error.message : String(error) }, 'the old configuration stays');
    }
  }

  function schedule(): void {
    timer = setTimeout(() => {
      // A failing store is reported by the requests that need it.
      poll()
        .catch((error: unknown) => log.debug({ err: error }, 'could not check for reloads of other nodes'))
        .finally(() => {
          if (!isStopped) schedule();
        });
    }, pollEveryMs).unref();
  }

  schedule();
  return () => {
    isStopped = true;
    clearTimeout(timer);
  };
}
