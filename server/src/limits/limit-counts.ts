import type { Failures } from './slow-down.ts';

/** Keys that are remembered for each counted act; the oldest are forgotten first. */
const keysMax = 50_000;

/** The act that is counted, and the key that it is counted for. */
export interface LimitKey {
  readonly what: string;
  readonly key: string;
  /** The account that this counts for, so that it can be forgotten with all else that does. Holds no space. */
  readonly account?: string;
}

/** The key of everything that counts for an account begins with this. */
function prefixOf(account: string): string {
  return `${account} `;
}

function keyOf({ key, account }: LimitKey): string {
  return account === undefined ? key : prefixOf(account) + key;
}

/** The acts of a window. */
export interface ActWindow {
  readonly count: number;
  /** In milliseconds since 1970. */
  readonly endsMs: number;
}

/** Time of an act, and length of the window that it may open; both in milliseconds. */
export interface ActTime {
  readonly nowMs: number;
  readonly windowMs: number;
}

/** Storage of the counts of acts and failures: in this process, or shared by all nodes. */
export interface LimitCounts {
  /** Counts one act, in a window that begins with the key's first act. */
  countAct(of: LimitKey, time: ActTime): Promise<ActWindow>;
  /**
   * Replaces the failures of some keys, in their order, by the result of `change`; `undefined` are none. Nothing
   * changes them in between, and if `change` throws, they stay as they were.
   */
  changeFailures(
    keys: readonly LimitKey[],
    change: (known: readonly (Failures | undefined)[]) => readonly (Failures | undefined)[],
  ): Promise<void>;
  /** Forgets all that counts for an account. */
  forgetAccount(account: string): Promise<void>;
}

/** Remembers something by key, up to a number of keys. */
export class BoundedMap<V> {
  readonly #byKey = new Map<string, V>();

  get(key: string): V | undefined {
    return this.#byKey.get(key);
  }

  /** Drops the oldest entry where there are too many. */
  set(key: string, value: V): void {
    this.#byKey.delete(key);
    this.#byKey.set(key, value);
    if (this.#byKey.size <= keysMax) return;
    const [oldest] = this.#byKey.keys();
    if (oldest !== undefined) this.#byKey.delete(oldest);
  }

  delete(key: string): void {
    this.#byKey.delete(key);
  }

  deleteBeginningWith(prefix: string): void {
    for (const key of this.#byKey.keys()) if (key.startsWith(prefix)) this.#byKey.delete(key);
  }
}

/** Adds acts, one unless it is given, to a window, or to a new one where that is over. */
export function withAct(known: ActWindow | undefined, { nowMs, windowMs }: ActTime, amount = 1): ActWindow {
  // A clock that was set back must not block anyone for longer than one window.
  const isOpen = known !== undefined && nowMs < known.endsMs && known.endsMs - nowMs <= windowMs;
  return isOpen ? { count: known.count + amount, endsMs: known.endsMs } : { count: amount, endsMs: nowMs + windowMs };
}

/** Maps of their own for each thing counted, so that many keys of one make nothing of another be forgotten. */
class MapsByWhat<V> {
  readonly #maps = new Map<string, BoundedMap<V>>();

  of(what: string): BoundedMap<V> {
    const known = this.#maps.get(what) ?? new BoundedMap<V>();
    this.#maps.set(what, known);
    return known;
  }

  all(): Iterable<BoundedMap<V>> {
    return this.#maps.values();
  }
}

/** Counts in this process alone. Each call has its effect before it returns its promise. */
export function countsInMemory(): LimitCounts {
  const windows = new MapsByWhat<ActWindow>();
  const failures = new MapsByWhat<Failures>();
  return {
    async countAct(of, time) {
      const [map, key] = [windows.of(of.what), keyOf(of)];
      const window = withAct(map.get(key), time);
      map.set(key, window);
      return window;
    },
    async changeFailures(keys, change) {
      const changed = change(keys.map((of) => failures.of(of.what).get(keyOf(of))));
      for (const [place, of] of keys.entries()) {
        const value = changed[place];
        if (value) failures.of(of.what).set(keyOf(of), value);
        else failures.of(of.what).delete(keyOf(of));
      }
    },
    async forgetAccount(account) {
      for (const map of [...failures.all(), ...windows.all()]) map.deleteBeginningWith(prefixOf(account));
    },
  };
}
