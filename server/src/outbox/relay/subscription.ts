import type { Reader } from '../../db/database.ts';
import type { StreamedEvent, StreamName } from '../envelope.ts';
import type { RetryPlan } from './retry.ts';
import type { Sink } from './sink.ts';

/** Returns the name of a subscription of a stream, by its destination. */
export function subscriptionName(stream: StreamName, to: string): string {
  return `${stream}/${to}`;
}

/** Returns whether a subscription, by its name, is one of a stream. */
export function isSubscriptionTo(stream: StreamName, name: string): boolean {
  return name.startsWith(`${stream}/`);
}

/** Source of a subscription: a log whose events are numbered in commit order. */
export interface EventSource {
  /** The sequence of the last event that was ever written; 0 before the first. */
  newest(read: Reader): Promise<number>;
  /** Events in order. */
  read(read: Reader, query: SourceQuery): Promise<readonly StreamedEvent[]>;
}

/** Filter for the next events. */
interface SourceQuery {
  /** Only those with a greater sequence. */
  readonly after: number;
  /** The maximum number of events. */
  readonly limit: number;
  /** Only those of these types; `null`: all. */
  readonly types: ReadonlySet<string> | null;
}

/** A position in a log, and the destination that events are sent to from there. */
export interface Subscription {
  /** Name of its position in the store: the stream and the destination. */
  readonly name: string;
  readonly source: EventSource;
  /** The types of event that go out; `null`: all. */
  readonly types: ReadonlySet<string> | null;
  readonly sink: Sink;
  readonly retry: RetryPlan;
  /** Disables the destination: it wants no more events, or has failed for longer than the retry plan lasts. */
  readonly disable?: (kind: 'gone' | 'failing', reason: string) => Promise<void>;
}
