import type { StreamedEvent } from '../envelope.ts';

/**
 * The reason why events did not arrive.
 * - `unavailable`: the destination was not reached, or has failures of its own. Everything waits and is retried.
 * - `refused`: the first event that did not arrive was refused; the others may be accepted.
 * - `gone`: the destination wants no more events.
 */
export interface SinkFailure {
  readonly kind: 'unavailable' | 'refused' | 'gone';
  /** In a few words, for administrators and the log. Never a secret. */
  readonly reason: string;
  /** Milliseconds that the destination asked to wait; bounded. */
  readonly retryAfterMs?: number;
}

/** Outcome of a delivery. */
export interface Delivery {
  /** The number of events, from the first on and without a gap, that have certainly arrived. */
  readonly delivered: number;
  /** Why it was not all of them; `null` where it was. */
  readonly failure: SinkFailure | null;
}

/** Destination of events. */
export interface Sink {
  /** The maximum number of events per delivery. */
  readonly batchMax: number;
  /**
   * Delivers events in order: an event never arrives before one that failed earlier. An event may arrive that is not
   * counted as delivered. Takes a bounded time and never throws.
   */
  deliver(events: readonly StreamedEvent[]): Promise<Delivery>;
  /** Releases the resources of the sink; a delivery in flight fails. */
  close(): Promise<void>;
}
