import type { Logger } from 'pino';
import { type Clock, minute, second } from '../base/clock.ts';
import type { Metrics } from '../metrics/metrics.ts';

const flushDelayMs = second;
const retryDelayMs = 10 * second;
const writtenKeptMax = 100_000;

/** Remembers when tokens were used, and writes it behind the requests. */
export interface LastUsed {
  /** To be called at each use; costs next to nothing. */
  touch(tokenId: string, nowMs: number): void;
  /** Writes pending uses. Never throws: those that can't be written stay pending. */
  flush(): Promise<void>;
  /** Writes all pending uses, also those within a minute of the last write, and stops. */
  close(): Promise<void>;
}

interface LastUsedParts {
  readonly clock: Clock;
  readonly metrics: Metrics;
  readonly log: Logger;
  /** Writes times of last use, by token id, in one transaction. */
  readonly store: (uses: ReadonlyMap<string, number>) => Promise<void>;
}

/** Writer of `lastUsedAt`: at most once a minute for a token, all pending tokens in one transaction. Rule: PAT-31. */
export function lastUsed({ clock, metrics, log, store }: LastUsedParts): LastUsed {
  const seen = new Map<string, number>();
  const written = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;

  function due(everything: boolean): Map<string, number> {
    const nowMs = clock.now();
    return new Map([...seen].filter(([id]) => everything || nowMs - (written.get(id) ?? -minute) >= minute));
  }

  async function write(uses: ReadonlyMap<string, number>): Promise<void> {
    if (uses.size === 0) return;
    try {
      await store(uses);
    } catch (error) {
      metrics.countFault('last-used');
      log.warn({ err: error }, 'the last use of tokens could not be written; it will be tried again');
      return;
    }
    if (written.size > writtenKeptMax) written.clear();
    for (const [id, usedAt] of uses) {
      written.set(id, usedAt);
      if (seen.get(id) === usedAt) seen.delete(id);
    }
  }

  async function writeDue(): Promise<void> {
    timer = undefined;
    await write(due(false));
    if (seen.size > 0) schedule(retryDelayMs);
  }

  function schedule(delayMs: number): void {
    timer ??= setTimeout(() => void writeDue(), delayMs).unref();
  }

  return {
    touch: (tokenId, nowMs) => {
      seen.set(tokenId, nowMs);
      schedule(flushDelayMs);
    },
    flush: () => write(due(false)),
    close: async () => {
      clearTimeout(timer);
      await write(due(true));
    },
  };
}
