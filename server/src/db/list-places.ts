import { second } from '../base/clock.ts';
import { ApiError, refuseTooMany } from '../base/errors.ts';
import { KeyedCounter } from '../base/keyed-counter.ts';
import { Scope } from '../base/scope.ts';

const ofOneMax = 4;
/** A list of which nothing was taken for this long gives its place to a reader who finds none. */
const stalledMs = 5 * second;
const retryAfterSeconds = 5;

/** A list under way. */
interface Place {
  readonly reader: string;
  /** Time of the monotonic clock at which its last batch was given out; `null` while the next one is read. */
  idleSinceMs: number | null;
  isLost: boolean;
  /** Gives back all that the list has taken. Its reader must not be waiting for a batch. */
  readonly end: () => Promise<void>;
}

/**
 * Opens a list whose resources the scope gives back. Stopped early, its batches must leave them ready for that.
 */
type OpenList<R> = (scope: Scope) => AsyncGenerator<readonly R[]>;

/** Limits of a store for its lists. */
interface PlacesOptions {
  /** Maximum number of lists at once. */
  readonly max: number;
  /** After lists have overlapped for this long, all have to end before the next one begins. */
  readonly withoutGapMs?: number;
}

/** Places of the long lists of a store: each list has a connection and a snapshot to itself. Rule: HTTP-41. */
export class ListPlaces {
  readonly #max: number;
  readonly #withoutGapMs: number;
  readonly #running = new KeyedCounter('lists');
  readonly #places = new Set<Place>();
  #busySinceMs = 0;

  constructor({ max, withoutGapMs = Number.POSITIVE_INFINITY }: PlacesOptions) {
    this.#max = max;
    this.#withoutGapMs = withoutGapMs;
  }

  /**
   * Reads a list in a place of its own, which it leaves with the reading, also where the reader stops early. Throws
   * `tooManyRequests` where this reader has too many lists, `overloaded` where no place is to be had, and an error in
   * the middle where the place was lost to another reader.
   */
  async *read<R>(reader: string, open: OpenList<R>): AsyncGenerator<readonly R[]> {
    const scope = new Scope();
    try {
      await this.#take(scope, reader);
      const batches = open(scope);
      const place = this.#keep(scope, reader, batches);
      for await (const batch of batches) {
        place.idleSinceMs = performance.now();
        yield batch;
        if (place.isLost) throw new Error('a list was read too slowly, and lost its place to another reader');
        place.idleSinceMs = null;
      }
    } finally {
      scope.end();
    }
  }

  async #take(scope: Scope, reader: string): Promise<void> {
    if (this.#running.of(reader) >= ofOneMax) throw refuseTooMany(ofOneMax, retryAfterSeconds);
    while (this.#isClosedToMore() && (await this.#endStalled(reader)));
    // Of this reader, more may have begun meanwhile.
    if (this.#running.of(reader) >= ofOneMax) throw refuseTooMany(ofOneMax, retryAfterSeconds);
    if (this.#isClosedToMore()) {
      throw new ApiError('overloaded', { headers: { 'retry-after': String(retryAfterSeconds) } });
    }
    if (this.#running.all === 0) this.#busySinceMs = performance.now();
    this.#running.take(scope, reader);
  }

  #keep(scope: Scope, reader: string, batches: AsyncGenerator): Place {
    const end = async () => {
      await batches.return(undefined);
      scope.end();
    };
    const place: Place = { reader, idleSinceMs: null, isLost: false, end };
    this.#places.add(place);
    scope.hold(() => this.#places.delete(place));
    return place;
  }

  #isGapDue(): boolean {
    return this.#running.all > 0 && performance.now() - this.#busySinceMs > this.#withoutGapMs;
  }

  #isClosedToMore(): boolean {
    return this.#running.all >= this.#max || this.#isGapDue();
  }

  /**
   * Ends a stalled list of the reader who has most, but for the sake of another list only where that is more than its
   * reader has. Returns whether there was one.
   */
  async #endStalled(reader: string): Promise<boolean> {
    const untilMs = performance.now() - stalledMs;
    const least = this.#isGapDue() ? 0 : this.#running.of(reader);
    const [place] = [...this.#places]
      .filter(({ idleSinceMs }) => idleSinceMs !== null && idleSinceMs <= untilMs)
      .filter((other) => this.#running.of(other.reader) > least)
      .sort((one, other) => this.#running.of(other.reader) - this.#running.of(one.reader));
    if (place === undefined) return false;
    this.#places.delete(place);
    place.isLost = true;
    await place.end();
    return true;
  }
}
