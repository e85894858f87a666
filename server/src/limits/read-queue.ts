import { setImmediate } from 'node:timers/promises';
import { ApiError, refuseTooMany } from '../base/errors.ts';
import { KeyedCounter } from '../base/keyed-counter.ts';
import { inScope } from '../base/scope.ts';

/** A store that is elsewhere is waited for by so many at once. */
const atOnceMax = 4;
/** Of one caller, under way or waiting, and of all. */
const ofOneMax = 128;
const ofAllMax = 1_000;
const retryAfterSeconds = 1;

/** Carries out reads that cost, a few at once and caller by caller in turn. */
export interface ReadQueue {
  /**
   * Carries one out when it is its turn, each in a turn of the event loop of its own, so that whatever else waits is answered
   * in between. Throws `tooManyRequests` where too many of this caller wait, and `overloaded` where too many of all do.
   * @param holder whom it is counted for
   */
  run<T>(holder: string, work: () => Promise<T>): Promise<T>;
}

/** Makes the queue of a process. Rule: HTTP-38. */
export function readQueue(): ReadQueue {
  const counted = new KeyedCounter('reads');
  /** Those that wait, by holder; whose turn is next comes first. */
  const waiting = new Map<string, (() => void)[]>();
  let running = 0;
  let isStarting = false;

  function next(): (() => void) | undefined {
    const [first] = waiting;
    if (!first) return undefined;
    const [holder, begins] = first;
    const begin = begins.shift();
    waiting.delete(holder);
    if (begins.length > 0) waiting.set(holder, begins);
    return begin;
  }

  async function start(): Promise<void> {
    if (isStarting) return;
    isStarting = true;
    while (running < atOnceMax && waiting.size > 0) {
      await setImmediate();
      running += 1;
      next()?.();
    }
    isStarting = false;
  }

  async function inTurn<T>(holder: string, work: () => Promise<T>): Promise<T> {
    await new Promise<void>((resolve) => {
      const begins = waiting.get(holder) ?? [];
      begins.push(resolve);
      waiting.set(holder, begins);
      void start();
    });
    try {
      return await work();
    } finally {
      running -= 1;
      void start();
    }
  }

  return {
    run: (holder, work) =>
      inScope((scope) => {
        if (counted.of(holder) >= ofOneMax) throw refuseTooMany(ofOneMax, retryAfterSeconds);
        if (counted.all >= ofAllMax) {
          throw new ApiError('overloaded', { headers: { 'retry-after': String(retryAfterSeconds) } });
        }
        counted.take(scope, holder);
        return inTurn(holder, work);
      }),
  };
}
