import type { StreamedEvent } from '../envelope.ts';

/**
 * Why events did not arrive.
 * - `unwell`: nobody was reached, or whoever was has troubles of its own. Everything waits and is tried again.
 * - `refused`: the first event that did not arrive is what is refused; the same may be true of no other.
 * - `gone`: nobody wants any event any more.
 */
export interface SinkFailure {
  readonly kind: 'unwell' | 'refused' | 'gone';
  /** In a few words, for administrators and the log. Never a secret. */
  readonly reason: string;
  /** How long it asked to be left alone, in milliseconds; bounded. */
  readonly retryAfterMs?: number;
}

/** How far a delivery got. */
export interface Delivery {
  /** How many of the events, from the first on and without a gap, have surely arrived. */
  readonly delivered: number;
  /** Why it was not all of them; `null` where it was. */
  readonly failure: SinkFailure | null;
}

/** Where events are relayed to. */
export interface Sink {
  /** How many events it is given at once. */
  readonly batchMax: number;
  /**
   * Delivers events in their order: what comes later never arrives before what failed. An event may arrive that is not
   * counted as delivered. Takes a bounded time and never throws.
   */
  deliver(events: readonly StreamedEvent[]): Promise<Delivery>;
  /** Ends what the sink holds; a delivery under way fails. */
  close(): Promise<void>;
}
