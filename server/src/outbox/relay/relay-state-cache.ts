import type { Reader } from '../../db/database.ts';
import { type StoredRelay, selectFirstRequeued, selectRelays } from './relay-store.ts';
import type { EventSource } from './subscription.ts';

/** State that decides whether a subscription has work, as the store had it. */
export interface RelayView {
  /** `undefined` where there is no such subscription. */
  readonly relay: StoredRelay | undefined;
  /** The sequence of the first event that was asked for again; `null` without one. */
  readonly requeued: number | null;
  /** The sequence of the last event of its source. */
  readonly newest: number;
}

/** Returns whether two states of a subscription are the same. */
function isSameView(one: RelayView, other: RelayView): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/**
 * Cache of the states of all subscriptions, read once after a commit however many there are, so that idle ones need no
 * query of their own.
 */
export class RelayStateCache {
  readonly #read: Reader;
  readonly #newest = new Map<EventSource, Promise<number>>();
  #version: number | null = null;
  #views: Promise<(name: string) => Omit<RelayView, 'newest'>> | null = null;

  constructor(read: Reader) {
    this.#read = read;
  }

  /**
   * Returns whether a subscription still has the state in which it had no work. Throws what the store throws.
   * @param mark the data version of the log watch; everything committed before it was read counts
   */
  async isStill(
    name: string,
    source: EventSource,
    { version, seen }: { version: number; seen: RelayView },
  ): Promise<boolean> {
    if (version !== this.#version) {
      this.#version = version;
      this.#views = null;
      this.#newest.clear();
    }
    this.#views ??= this.#readViews();
    const views = this.#views;
    const newest = this.#newest.get(source) ?? source.newest(this.#read);
    this.#newest.set(source, newest);
    const [viewOf, last] = await Promise.all([views, newest]);
    return isSameView({ ...viewOf(name), newest: last }, seen);
  }

  async #readViews(): Promise<(name: string) => Omit<RelayView, 'newest'>> {
    const relays = new Map((await selectRelays(this.#read)).map((relay) => [relay.name, relay]));
    const requeued = await selectFirstRequeued(this.#read);
    return (name) => ({ relay: relays.get(name), requeued: requeued.get(name) ?? null });
  }
}
