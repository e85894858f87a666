/** Tells whether anything was committed: see `Database.commitMark`. */
type CommitMark = () => number;

const entriesMax = 20_000;

/**
 * Cache of values read from the store, each valid until the next commit of any process. A cached value therefore never
 * differs from what the store would return, and nothing has to be invalidated by hand. A value whose reading began
 * before a commit and ended after it is not cached.
 */
export class KeptUntilCommit<K, V> {
  readonly #commitMark: CommitMark;
  readonly #values = new Map<K, V>();
  #mark: number | null = null;

  constructor(commitMark: CommitMark) {
    this.#commitMark = commitMark;
  }

  /** The value, if it still holds. */
  get(key: K): V | undefined {
    const mark = this.#commitMark();
    if (mark !== this.#mark) {
      this.#values.clear();
      this.#mark = mark;
    }
    return this.#values.get(key);
  }

  /** To be taken after `get` and before reading; `put` needs it. */
  stamp(): number | null {
    return this.#mark;
  }

  /** Keeps a value, unless something was committed since the stamp was taken. */
  put(key: K, value: V, stamp: number | null): void {
    if (stamp === null || stamp !== this.#mark) return;
    if (this.#values.size >= entriesMax) this.#values.clear();
    this.#values.set(key, value);
  }
}
