import { second } from '../base/clock.ts';
import { RefusedError, refuseTooMany } from '../base/errors.ts';
import { Scope } from '../base/scope.ts';
import { Shares } from '../base/shares.ts';

/** Of one caller, as long as there is room. */
const ofOneMax = 4;
/** A list of which nothing was taken for so long gives its place to somebody who has none. */
const stalledMs = 3 * second;
const retryAfterSeconds = 5;

/** A list under way. */
interface Place {
  readonly reader: string;
  /** Since when it waits to be read on, by the monotonic clock; `null` while it is read. */
  idleSinceMs: number | null;
  isLost: boolean;
  /** Lets go of all that the list holds; there from the first batch on. */
  end: (() => Promise<void>) | null;
}

/** Opens a list: its batches, which hold on to the scope until it ends. */
type OpenList<R> = (scope: Scope) => AsyncIterable<readonly R[]>;

/** The places of long lists: each holds a connection and a moment of the store until it is read to its end. Rule: HTTP-40. */
export class ListPlaces {
  readonly #max: number;
  readonly #withoutGapMs: number;
  readonly #running = new Shares('lists');
  readonly #places = new Set<Place>();
  #busySinceMs = 0;

  /**
   * @param max how many lists are read at once
   * @param withoutGapMs for how long lists may overlap before all have to end
   */
  constructor(max: number, withoutGapMs = Number.POSITIVE_INFINITY) {
    this.#max = max;
    this.#withoutGapMs = withoutGapMs;
  }

  /** Reads a list at a place of its own. Throws `tooManyRequests` where the reader has too many, `overloaded` where all do. */
  async *read<R>(reader: string, open: OpenList<R>): AsyncGenerator<readonly R[]> {
    const scope = new Scope();
    const place: Place = { reader, idleSinceMs: null, isLost: false, end: null };
    try {
      await this.#take(scope, place);
      yield* this.#watched(place, { batches: open(scope), scope });
    } finally {
      scope.end();
    }
  }

  /** Beyond half of the places nobody gets a second one: so there is room for others. */
  #allowance(): number {
    return this.#running.all < this.#max / 2 ? ofOneMax : 1;
  }

  async #take(scope: Scope, place: Place): Promise<void> {
    const allowance = this.#allowance();
    if (this.#running.of(place.reader) >= allowance) throw refuseTooMany(allowance, retryAfterSeconds);
    const nowMs = performance.now();
    const isGapDue = this.#running.all > 0 && nowMs - this.#busySinceMs > this.#withoutGapMs;
    const hasRoom = !isGapDue && (await this.#makeRoom());
    if (!hasRoom) {
      throw new RefusedError('overloaded', { headers: { 'retry-after': String(retryAfterSeconds) } });
    }
    if (this.#running.all === 0) this.#busySinceMs = nowMs;
    this.#running.take(scope, place.reader);
    this.#places.add(place);
    scope.hold(() => this.#places.delete(place));
  }

  /** Answers whether there is a place, after lists that nobody reads on were ended where there was none. */
  async #makeRoom(): Promise<boolean> {
    while (this.#running.all >= this.#max) if (!(await this.#endStalled())) return false;
    return true;
  }

  /** Ends a list that nobody reads on, of whoever has most of these; answers whether there was one. */
  async #endStalled(): Promise<boolean> {
    const untilMs = performance.now() - stalledMs;
    const stalled = [...this.#places].filter(({ idleSinceMs }) => idleSinceMs !== null && idleSinceMs <= untilMs);
    const [place] = stalled.sort((one, other) => this.#running.of(other.reader) - this.#running.of(one.reader));
    if (!place?.end) return false;
    place.isLost = true;
    this.#places.delete(place);
    await place.end();
    return true;
  }

  async *#watched<R>(
    place: Place,
    { batches, scope }: { readonly batches: AsyncIterable<readonly R[]>; readonly scope: Scope },
  ): AsyncGenerator<readonly R[]> {
    const rows = batches[Symbol.asyncIterator]();
    const close = async () => void (await rows.return?.());
    place.end = async () => {
      await close();
      scope.end();
    };
    try {
      for (let next = await rows.next(); !next.done; next = await rows.next()) {
        place.idleSinceMs = performance.now();
        yield next.value;
        place.idleSinceMs = null;
        if (place.isLost) throw new Error('a list lost its place to others: it was read too slowly');
      }
    } finally {
      await close();
    }
  }
}
