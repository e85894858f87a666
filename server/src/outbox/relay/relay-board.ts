import type { Reader } from '../../db/database.ts';
import type { EventSource } from './outlet.ts';
import { type StoredRelay, selectFirstRequeued, selectRelays } from './relay-store.ts';

/** All that decides whether a way out has anything to do, as the store had it. */
export interface RelayView {
  /** `undefined` where there is no such way out. */
  readonly relay: StoredRelay | undefined;
  /** The sequence of the first event that was asked for again; `null` without one. */
  readonly requeued: number | null;
  /** The sequence of the last event of its source. */
  readonly newest: number;
}

/** Whether nothing has changed between two views of a way out. */
function isSameView(one: RelayView, other: RelayView): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/**
 * What all ways out look like, read once after a commit however many there are: so that those with nothing to do need ask
 * nothing each for itself.
 */
export class RelayBoard {
  readonly #read: Reader;
  readonly #newest = new Map<EventSource, Promise<number>>();
  #mark: number | null = null;
  #views: Promise<(name: string) => Omit<RelayView, 'newest'>> | null = null;

  constructor(read: Reader) {
    this.#read = read;
  }

  /**
   * Whether a way out is still as it was seen by somebody who found nothing to do. Throws what the store throws.
   * @param mark of the log watch; what was committed before it was read counts
   */
  async isStill(
    name: string,
    source: EventSource,
    { mark, seen }: { mark: number; seen: RelayView },
  ): Promise<boolean> {
    if (mark !== this.#mark) {
      this.#mark = mark;
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
