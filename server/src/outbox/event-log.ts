import { readCounter } from '../db/counters.ts';
import type { Reader, Tx } from '../db/database.ts';
import type { Outbox } from '../db/schema/event-tables.ts';
import type { Envelope, StreamedEvent } from './envelope.ts';

/** The range of events that are still in the log. Rule: EVENT-10. */
export interface LogSpan {
  /** The sequence of the oldest event kept; one more than `newest` where there is none. */
  readonly oldest: number;
  /** The sequence of the last event ever written, kept or not; 0 before the first. */
  readonly newest: number;
}

/** The sequence of the last event ever written; 0 before the first. */
export function readNewest(read: Reader): Promise<number> {
  return readCounter(read, 'event');
}

/** Reads the range of the event log from one snapshot. */
export async function readSpan(read: Reader): Promise<LogSpan> {
  // One statement: between two, events may be written that would be in neither of them, or removed.
  const { oldest, newest } = await read
    .selectNoFrom((eb) => [
      eb
        .selectFrom('outbox')
        .select(({ fn }) => fn.min('sequence').as('oldest'))
        .as('oldest'),
      eb.selectFrom('counters').where('name', '=', 'event').select('value').as('newest'),
    ])
    .executeTakeFirstOrThrow();
  return { oldest: oldest ?? (newest ?? 0) + 1, newest: newest ?? 0 };
}

function parsePayload(text: string): Envelope['payload'] {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what `appendEvents` wrote
  return JSON.parse(text) as Envelope['payload'];
}

function toStreamedEvent(row: Outbox): StreamedEvent {
  const { sequence, id, org_id: key, event_type: eventType, occurred_at: timestamp } = row;
  return { key, envelope: { eventType, timestamp, payload: parsePayload(row.payload), id, sequence } };
}

/** Filter for events. */
export interface EventQuery {
  /** Only those with a greater sequence. */
  readonly after: number;
  /** The maximum number of events. */
  readonly limit: number;
  /** Only those of this organization; `null`: all. */
  readonly orgId?: string | null;
  /** Only those of these types; `null`: all. */
  readonly types?: ReadonlySet<string> | null;
}

/**
 * Reads events in the order of their sequence. A reader that continues after the last one misses none: numbers are
 * assigned in commit order. Rules: EVENT-1, EVENT-9.
 */
export async function readEvents(
  read: Reader,
  { after, limit, orgId = null, types = null }: EventQuery,
): Promise<readonly StreamedEvent[]> {
  let query = read.selectFrom('outbox').where('sequence', '>', after).orderBy('sequence').limit(limit).selectAll();
  if (orgId !== null) query = query.where('org_id', '=', orgId);
  if (types) query = query.where('event_type', 'in', [...types]);
  return (await query.execute()).map(toStreamedEvent);
}

/** Reads the events with these sequences, as far as they are kept. */
export async function readEventsOf(read: Reader, sequences: readonly number[]): Promise<readonly StreamedEvent[]> {
  if (sequences.length === 0) return [];
  const rows = await read.selectFrom('outbox').where('sequence', 'in', sequences).selectAll().execute();
  return rows.map(toStreamedEvent);
}

/** Reads one event by its id; `null` where it isn't kept. */
export async function readEventById(read: Reader, id: string): Promise<StreamedEvent | null> {
  const row = await read.selectFrom('outbox').where('id', '=', id).selectAll().executeTakeFirst();
  return row ? toStreamedEvent(row) : null;
}

/**
 * Removes up to `limit` events up to a sequence that happened before a time, and returns their number. Rule: EVENT-20.
 */
export async function deleteOldEvents(
  tx: Tx,
  { upTo, beforeMs, limit }: { readonly upTo: number; readonly beforeMs: number; readonly limit: number },
): Promise<number> {
  // From the oldest on, so that no gap ever arises, whatever the clock did.
  const rows = await tx
    .selectFrom('outbox')
    .where('sequence', '<=', upTo)
    .orderBy('sequence')
    .limit(limit)
    .select(['sequence', 'occurred_at as occurredAt'])
    .execute();
  const firstKept = rows.findIndex(({ occurredAt }) => occurredAt >= beforeMs);
  const last = rows.at(firstKept < 0 ? -1 : firstKept - 1);
  if (firstKept === 0 || last === undefined) return 0;
  const { numDeletedRows } = await tx.deleteFrom('outbox').where('sequence', '<=', last.sequence).executeTakeFirst();
  return Number(numDeletedRows);
}
