import type { Pool } from 'undici';

/**
 * Pool of connections that may be retired while it is used: it closes when its last user is done, and a later user who
 * kept a reference gets a new one for the duration of the use.
 */
export class RetirablePool {
  readonly #open: () => Pool;
  #pool: Pool;
  #users = 0;
  #isRetired = false;
  #isEnded = false;
  #becomeIdle: () => void = () => {};

  constructor(open: () => Pool) {
    this.#open = open;
    this.#pool = open();
  }

  /** Returns the number of its users. */
  get users(): number {
    return this.#users;
  }

  /** The pool, until it is given back. */
  take(): Pool {
    this.#users += 1;
    if (this.#pool.closed && !this.#isEnded) this.#pool = this.#open();
    return this.#pool;
  }

  /** To be called once for each `take`. */
  giveBack(): void {
    this.#users -= 1;
    if (this.#users > 0 || !this.#isRetired) return;
    this.#becomeIdle();
    void this.#close();
  }

  /** Closes it once it is not used any more. */
  async retire(): Promise<void> {
    this.#isRetired = true;
    if (this.#users > 0) {
      await new Promise<void>((resolve) => {
        this.#becomeIdle = resolve;
      });
    }
    await this.#close();
  }

  async #close(): Promise<void> {
    if (!this.#pool.closed && !this.#isEnded) await this.#pool.close();
  }

  /** Ends all connections, used or not. */
  async destroy(): Promise<void> {
    this.#isEnded = true;
    await this.#pool.destroy();
  }
}
