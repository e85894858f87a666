/**
 * Resources of a piece of work until it ends: memory, places in a queue, a connection to read a list by. Nothing can be
 * taken from `Shares` without a scope, and a scope gives everything back when it ends. Rule: HTTP-32.
 */
export class Scope {
  readonly #held = new Set<() => void>();
  #isEnded = false;

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /**
   * Registers a function that gives a resource back when the scope ends; calls it at once where the scope has ended
   * already.
   * @returns a function that gives it back earlier; it is given back only once
   */
  hold(giveBack: () => void): () => void {
    if (this.#isEnded) {
      giveBack();
      return () => {};
    }
    const once = () => {
      if (this.#held.delete(once)) giveBack();
    };
    this.#held.add(once);
    return once;
  }

  /** Gives everything back, in reverse order. Further calls do nothing. */
  end(): void {
    this.#isEnded = true;
    for (const giveBack of [...this.#held].reverse()) giveBack();
  }
}

/** Does some work in a scope of its own, which ends with it, however it ends. */
export async function inScope<T>(work: (scope: Scope) => Promise<T>): Promise<T> {
  const scope = new Scope();
  try {
    return await work(scope);
  } finally {
    scope.end();
  }
}
