import { second } from '../../base/clock.ts';
import { StoreLostError } from '../failures.ts';
import type { PostgresPool } from './postgres-pool.ts';

/** How long whoever checks a credential waits for this, for the answer to others before included. */
const markMsMax = 3 * second;
/** How long an answer may take; a server that takes longer for one row is gone. */
const answerMsMax = 2 * second;
/** And how long it may take whatever has passed: whoever was held up, a machine that slept, asks before giving up. */
const answerMsMin = 0.5 * second;

const statement = { name: 'mark', text: 'select mark from writer where id = 1' };

/**
 * Rejects where no answer has come in time, and tells `giveUp` first. An answer that is there already counts, although this
 * process had no time to look at it.
 */
function within<T>(msMax: number, answer: Promise<T>, giveUp: () => void): Promise<T> {
  return new Promise((resolve, reject) => {
    let isOver = false;
    const timer = setTimeout(() => {
      setImmediate(() => {
        if (isOver) return;
        giveUp();
        reject(new StoreLostError('the store does not answer'));
      });
    }, msMax);
    const end = () => {
      isOver = true;
      clearTimeout(timer);
    };
    answer.finally(end).then(resolve, reject);
  });
}

/**
 * A number that every transaction of every node changes. It is asked for anew after each request for it, by one
 * statement for all who asked while the one before was under way: so nobody is told what was true before they asked.
 */
export class PostgresMark {
  readonly #pool: PostgresPool;
  readonly #onSilence: (askedMs: number) => void;
  #last: Promise<unknown> = Promise.resolve();
  #next: Promise<void> | null = null;
  #mark = -1;

  /**
   * @param pool for this alone
   * @param onSilence told that the server has not answered what it was asked at `askedMs` of `performance.now()`
   */
  constructor(pool: PostgresPool, onSilence: (askedMs: number) => void) {
    this.#pool = pool;
    this.#onSilence = onSilence;
  }

  /** As of the last `freshen`. */
  read(): number {
    return this.#mark;
  }

  /** Resolves once `read` knows of every commit that ended before this call. Throws StoreLostError after some three seconds. */
  freshen(): Promise<void> {
    if (this.#next) return this.#next;
    const untilMs = performance.now() + markMsMax;
    const next = this.#last.then(() => {
      this.#next = null;
      return this.#ask(untilMs);
    });
    this.#next = next;
    this.#last = next.catch(() => {});
    return next;
  }

  async #ask(untilMs: number): Promise<void> {
    const askedMs = performance.now();
    const { rows } = await within(
      Math.max(answerMsMin, Math.min(answerMsMax, untilMs - askedMs)),
      this.#pool.query<{ mark?: unknown }>(statement),
      () => {
        this.#pool.giveUp(askedMs);
        this.#onSilence(askedMs);
      },
    );
    const [row] = rows;
    if (typeof row?.mark !== 'number') throw new Error('the store has no mark');
    this.#mark = row.mark;
  }
}
