import { second } from '../base/clock.ts';
import { isStoreFailure } from './failures.ts';

/** Trying costs a write, and whoever asks for the health of the service needs no credential. */
const tryAgainMs = second;

/**
 * Whether an error says that something cannot be written: not that others are just writing, that the store is away, or that
 * a statement is wrong. The codes are those of SQLite, and of appendix A of PostgreSQL's manual: no room, no memory, what
 * the system failed in, and a database that may only be read.
 */
function saysUnwritable(error: Error): boolean {
  const code = 'code' in error ? String(error.code) : '';
  return isStoreFailure(error) && /^(SQLITE_(?!BUSY|LOCKED)|53100|53200|58|25006)/.test(code);
}

/**
 * Remembers that a store refused to write, as a full disk has it do, until it writes again: reading alone would not tell.
 * Rule: STORE-15.
 */
export class WriteHealth {
  readonly #tryToWrite: () => Promise<unknown>;
  readonly #doubtMs: number;
  #refusal: Error | null = null;
  #refusedMs = 0;
  #triedMs = 0;

  /**
   * @param tryToWrite does a transaction that changes nothing, under `watch`; throws where it cannot
   * @param doubtMs for so long after a refusal nothing that was written proves that everything can be, as where there is
   * room left for what is small
   */
  constructor(tryToWrite: () => Promise<unknown>, doubtMs = 0) {
    this.#tryToWrite = tryToWrite;
    this.#doubtMs = doubtMs;
  }

  /** Runs a transaction, and notes what became of it. */
  async watch<T>(run: () => Promise<T>): Promise<T> {
    try {
      const done = await run();
      if (this.#refusal !== null && performance.now() - this.#refusedMs >= this.#doubtMs) this.#refusal = null;
      return done;
    } catch (error) {
      if (error instanceof Error && saysUnwritable(error)) {
        this.#refusal = error;
        this.#refusedMs = performance.now();
      }
      throw error;
    }
  }

  /** Throws while the store does not write; tries, once a second at most, whether it does again. */
  async check(): Promise<void> {
    if (this.#refusal === null) return;
    const nowMs = performance.now();
    if (nowMs - this.#triedMs >= tryAgainMs) {
      this.#triedMs = nowMs;
      await this.#tryToWrite();
    }
    if (this.#refusal !== null) throw this.#refusal;
  }
}
