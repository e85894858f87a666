import type { Scope } from './scope.ts';

const allCounts = new Map<string, number>();

function countAll(what: string, amount: number): void {
  allCounts.set(what, (allCounts.get(what) ?? 0) + amount);
}

/** Returns the amounts that this process has in use, by kind; a kind that was never used is absent. */
export function currentCounts(): ReadonlyMap<string, number> {
  return allCounts;
}

/** Counter of a resource in use, by key and in total. A key with nothing in use is forgotten. */
export class KeyedCounter {
  readonly #what: string;
  readonly #byHolder = new Map<string, number>();
  #all = 0;

  /** @param what the name by which `currentCounts` counts it */
  constructor(what: string) {
    this.#what = what;
  }

  of(key: string): number {
    return this.#byHolder.get(key) ?? 0;
  }

  get all(): number {
    return this.#all;
  }

  /**
   * Takes some of it until the scope ends.
   * @returns gives it back earlier
   */
  take(scope: Scope, key: string, amount = 1): () => void {
    this.#add(key, amount);
    return scope.hold(() => this.#add(key, -amount));
  }

  #add(key: string, amount: number): void {
    const own = this.of(key) + amount;
    if (own > 0) this.#byHolder.set(key, own);
    else this.#byHolder.delete(key);
    this.#all += amount;
    countAll(this.#what, amount);
  }
}
