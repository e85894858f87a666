import { second } from '../../base/clock.ts';
import { StoreLostError } from '../failures.ts';
import type { PostgresPool } from './postgres-pool.ts';

/** Milliseconds that a credential check waits for the data version, including the wait for earlier queries. */
const versionMsMax = 3 * second;
/** Milliseconds for one response; a server that takes longer for one row is treated as gone. */
const responseMsMax = 2 * second;
/** Milliseconds that remain for one response even after a pause of this process, such as a suspended machine. */
const responseMsMin = 0.5 * second;

const statement = { name: 'mark', text: 'select mark from writer where id = 1' };

/**
 * Rejects where no response arrived in time, and calls `disable` first. A response that has arrived counts, although
 * this process had no time to read it.
 */
function within<T>(msMax: number, response: Promise<T>, giveUp: () => void): Promise<T> {
  return new Promise((resolve, reject) => {
    let isOver = false;
    const timer = setTimeout(() => {
      setImmediate(() => {
        if (isOver) return;
        giveUp();
        reject(new StoreLostError('the store does not respond'));
      });
    }, msMax);
    const end = () => {
      isOver = true;
      clearTimeout(timer);
    };
    response.finally(end).then(resolve, reject);
  });
}

/**
 * Data version of PostgreSQL: a number that every transaction of every node changes. Each request for it is answered by
 * a query that started after the request; one query serves all requests that arrived while the one before was running.
 * So no caller gets a version from before it asked.
 */
export class PostgresDataVersion {
  readonly #pool: PostgresPool;
  readonly #onSilence: (askedMs: number) => void;
  #last: Promise<unknown> = Promise.resolve();
  #next: Promise<void> | null = null;
  #version = -1;

  /**
   * @param pool used for this alone
   * @param onSilence called when the server has not responded to a query sent at `askedMs` of `performance.now()`
   */
  constructor(pool: PostgresPool, onSilence: (askedMs: number) => void) {
    this.#pool = pool;
    this.#onSilence = onSilence;
  }

  /** As of the last `refreshVersion`. */
  read(): number {
    return this.#version;
  }

  /** Resolves once `read` knows of every commit that ended before this call. Throws StoreLostError after some three seconds. */
  refreshVersion(): Promise<void> {
    if (this.#next) return this.#next;
    const untilMs = performance.now() + versionMsMax;
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
      Math.max(responseMsMin, Math.min(responseMsMax, untilMs - askedMs)),
      this.#pool.query<{ mark?: unknown }>(statement),
      () => {
        this.#pool.giveUp(askedMs);
        this.#onSilence(askedMs);
      },
    );
    const [row] = rows;
    if (typeof row?.mark !== 'number') throw new Error('the store has no mark');
    this.#version = row.mark;
  }
}
