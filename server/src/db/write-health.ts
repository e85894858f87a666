import { second } from '../base/clock.ts';
import { isStoreFailure } from './failures.ts';

/** The check writes, and the health of the service can be asked for without a credential. */
const tryAgainMs = second;

/**
 * Returns whether an error means that the store cannot be written: not that others are writing, that the store is away,
 * or that a statement is wrong. The codes are those of SQLite, and of appendix A of PostgreSQL's manual: no room, no
 * memory, failures of the system, and a read-only database.
 */
function isUnwritable(error: Error): boolean {
  const code = 'code' in error ? String(error.code) : '';
  return isStoreFailure(error) && /^(SQLITE_(?!BUSY|LOCKED)|53100|53200|58|25006)/.test(code);
}

/**
 * Remembers that a store rejected a write, as on a full disk, until a write succeeds: reads alone would not show it.
 * Rule: STORE-15.
 */
export class WriteHealth {
  readonly #tryToWrite: () => Promise<unknown>;
  readonly #doubtMs: number;
  #refusal: Error | null = null;
  #refusedMs = 0;
  #triedMs = 0;

  /**
   * @param tryToWrite runs a transaction that changes nothing, under `watch`; throws where it cannot
   * @param doubtMs milliseconds after a failure in which a successful write proves nothing, as where there is still
   * room for small ones
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
      if (error instanceof Error && isUnwritable(error)) {
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
