/** Tells whether anything was committed: see `Database.dataVersion`. */
type DataVersion = () => number;

const entriesMax = 20_000;

/**
 * Cache of values read from the store, each valid until the next commit of any process. A cached value therefore never
 * differs from what the store would return, and nothing has to be invalidated by hand. A value whose reading began
 * before a commit and ended after it is not cached.
 */
export class CommitVersionedCache<K, V> {
  readonly #dataVersion: DataVersion;
  readonly #values = new Map<K, V>();
  #version: number | null = null;

  constructor(dataVersion: DataVersion) {
    this.#dataVersion = dataVersion;
  }

  /** The value, if it still holds. */
  get(key: K): V | undefined {
    const version = this.#dataVersion();
    if (version !== this.#version) {
      this.#values.clear();
      this.#version = version;
    }
    return this.#values.get(key);
  }

  /** To be taken after `get` and before reading; `put` needs it. */
  currentVersion(): number | null {
    return this.#version;
  }

  /** Keeps a value, unless something was committed since the stamp was taken. */
  put(key: K, value: V, versionAtStart: number | null): void {
    if (versionAtStart === null || versionAtStart !== this.#version) return;
    if (this.#values.size >= entriesMax) this.#values.clear();
    this.#values.set(key, value);
  }
}
