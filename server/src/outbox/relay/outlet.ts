import type { Reader } from '../../db/database.ts';
import type { StreamedEvent, StreamName } from '../envelope.ts';
import type { RetryPlan } from './retry.ts';
import type { Sink } from './sink.ts';

/** The name of a way out of a stream, by what it leads to. */
export function outletName(stream: StreamName, to: string): string {
  return `${stream}/${to}`;
}

/** Whether a way out, by its name, is one of a stream. */
export function isOutletOf(stream: StreamName, name: string): boolean {
  return name.startsWith(`${stream}/`);
}

/** What is relayed: a log whose events are numbered in commit order. */
export interface EventSource {
  /** The sequence of the last event that was ever written; 0 before the first. */
  newest(read: Reader): Promise<number>;
  /** Events in order. */
  read(read: Reader, query: SourceQuery): Promise<readonly StreamedEvent[]>;
}

/** What events are relayed next. */
interface SourceQuery {
  /** Only those with a greater sequence. */
  readonly after: number;
  /** At most so many. */
  readonly limit: number;
  /** Only those of these types; `null`: all. */
  readonly types: ReadonlySet<string> | null;
}

/** One way out. */
export interface Outlet {
  /** Names its position in the store: the stream and what it goes to. */
  readonly name: string;
  readonly source: EventSource;
  /** The types of event that go out; `null`: all. */
  readonly types: ReadonlySet<string> | null;
  readonly sink: Sink;
  readonly retry: RetryPlan;
  /** Told that nothing more is to be sent: it is not wanted, or has failed for as long as the plan goes on. */
  readonly giveUp?: (kind: 'gone' | 'failing', reason: string) => Promise<void>;
}
