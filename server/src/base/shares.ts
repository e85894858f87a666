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

  of(holder: string): number {
    return this.#byHolder.get(holder) ?? 0;
  }

  get all(): number {
    return this.#all;
  }

  /**
   * Takes some of it until the scope ends.
   * @returns gives it back earlier
   */
  take(scope: Scope, holder: string, amount = 1): () => void {
    this.#add(holder, amount);
    return scope.hold(() => this.#add(holder, -amount));
  }

  #add(holder: string, amount: number): void {
    const own = this.of(holder) + amount;
    if (own > 0) this.#byHolder.set(holder, own);
    else this.#byHolder.delete(holder);
    this.#all += amount;
    countAll(this.#what, amount);
  }
}
