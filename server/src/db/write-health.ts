import { second } from '../clock.ts';
import { isStoreFailure } from './failures.ts';

/** Trying costs a write, and whoever asks for the health of the service needs no credential. */
const tryAgainMs = second;

/** Whether an error says that nothing can be written: not that others are just writing, and not that a statement is wrong. */
function saysUnwritable(error: Error): boolean {
  const code = 'code' in error ? String(error.code) : '';
  return isStoreFailure(error) && !/^SQLITE_(BUSY|LOCKED)/.test(code);
}

/**
 * Remembers that a store refused to write, as a full disk has it do, until it writes again: reading alone would not tell.
 * Rule: STORE-15.
 */
export class WriteHealth {
  readonly #tryToWrite: () => Promise<void>;
  #refusal: Error | null = null;
  #triedMs = 0;

  /** @param tryToWrite writes something that changes nothing; throws where it cannot */
  constructor(tryToWrite: () => Promise<void>) {
    this.#tryToWrite = tryToWrite;
  }

  /** To be told what became of each transaction: `null`, or what it threw. */
  note(error: unknown): void {
    if (error === null) this.#refusal = null;
    else if (error instanceof Error && saysUnwritable(error)) this.#refusal = error;
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
