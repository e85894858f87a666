import { readAuditEventsOf } from '../../audit-log/audit-events.ts';
import { second } from '../../base/clock.ts';
import { ApiError } from '../../base/errors.ts';
import type { Reader } from '../../db/database.ts';
import type { OpenStream } from '../../http/media.ts';
import { auditStream, type Envelope, type StreamedEvent } from '../../outbox/envelope.ts';
import { type EventQuery, readEvents, readEventsOf, readNewest, readSpan } from '../../outbox/event-log.ts';
import { isSubscriptionTo } from '../../outbox/relay/subscription.ts';
import type { Services } from '../../services.ts';
import { toServerSent } from './event.ts';

const atOnce = 100;
/**
 * Interval at which an idle stream sends a comment, and checks that its reader may continue. Rules: EVENT-13, EVENT-14.
 */
const beatMs = 15 * second;
/** After how many milliseconds a client that lost the stream tries again. */
const retryMs = 3 * second;

function refuseGone(oldest: number, after: number): void {
  if (after >= oldest - 1) return;
  throw new ApiError('eventsGone', {
    params: { oldest: String(oldest), after: String(oldest - 1) },
    more: { oldest },
  });
}

/**
 * Returns the position to read from: after the given sequence, or the oldest event kept. Throws `eventsGone`. Rule:
 * EVENT-12.
 */
export async function readingPosition(read: Reader, after: number | undefined): Promise<number> {
  const { oldest, newest } = await readSpan(read);
  if (after === undefined) return oldest - 1;
  refuseGone(oldest, after);
  // For a log that was restored to an earlier state: its next events have these numbers again.
  return Math.min(after, newest);
}

/** Reads the events after a position. Throws `eventsGone` where the next one was removed meanwhile. Rule: EVENT-12. */
export async function readOn(read: Reader, query: EventQuery): Promise<readonly StreamedEvent[]> {
  const events = await readEvents(read, query);
  // Asked for last: what has been removed is removed from the old end.
  const { oldest } = await readSpan(read);
  refuseGone(oldest, query.after);
  return events;
}

/** Returns the events of some dead letters, by the ids of those; events that are no longer kept are absent. */
export async function findEvents(
  read: Reader,
  emails: readonly { readonly id: string; readonly relay: string; readonly sequence: number }[],
): Promise<ReadonlyMap<string, Envelope>> {
  const isAudit = (relay: string) => isSubscriptionTo(auditStream, relay);
  const sequencesOf = (audit: boolean) =>
    emails.filter(({ relay }) => isAudit(relay) === audit).map(({ sequence }) => sequence);
  const events = await readEventsOf(read, sequencesOf(false));
  const records = await readAuditEventsOf(read, sequencesOf(true));
  const bySequence = (found: readonly StreamedEvent[]) =>
    new Map(found.map(({ envelope }) => [envelope.sequence, envelope]));
  const [ofEvents, ofRecords] = [bySequence(events), bySequence(records)];
  return new Map(
    emails.flatMap(({ id, relay, sequence }) => {
      const envelope = (isAudit(relay) ? ofRecords : ofEvents).get(sequence);
      return envelope ? [[id, envelope] as const] : [];
    }),
  );
}

/** Services that a stream is read by. */
type Streaming = Pick<Services, 'db' | 'eventWatch' | 'backfills'>;

/** Reads the next events of a stream; far behind the newest one, it waits for its turn. Rule: HTTP-42. */
function readBatch(
  { db, backfills }: Streaming,
  query: EventQuery & { readonly newest: number },
  { signal, reader }: OpenStream,
): Promise<readonly StreamedEvent[]> {
  const read = async () => (signal.aborted ? [] : readOn(db.read, query));
  return query.newest - query.after > query.limit ? backfills.run(reader, read) : read();
}

/** Yields the events after a position, for as long as the reader is authorized. Throws the error that ends it. */
async function* follow(
  services: Streaming,
  { position, orgId }: ReadingFrom,
  stream: OpenStream,
): AsyncGenerator<string> {
  const { db, eventWatch } = services;
  const { signal, stillAdmitted } = stream;
  let after = position;
  for (;;) {
    // Asked for first: no event up to it is missing among those that are read.
    const newest = await readNewest(db.read);
    const events = await readBatch(services, { after, limit: atOnce, orgId, newest }, stream);
    if (signal.aborted) return;
    for (const { envelope } of events) {
      await stillAdmitted();
      if (signal.aborted) return;
      yield toServerSent(envelope);
      after = envelope.sequence;
    }
    if (events.length > 0) continue;
    after = Math.max(after, newest);
    const isThere = await eventWatch.wait({ until: () => eventWatch.newest > after, msMax: beatMs, signal });
    if (signal.aborted) return;
    if (isThere) continue;
    await stillAdmitted();
    yield ':\n\n';
  }
}

/** From where on a stream is read; `orgId` is null for the events of the system. */
interface ReadingFrom {
  readonly position: number;
  readonly orgId: string | null;
}

/**
 * Events as they happen, in the form of server-sent events, until the reader leaves, may not read any more or the service
 * stops. Between two reads nothing of the store is held. Rules: EVENT-13, EVENT-14.
 */
export async function* streamEvents(
  services: Streaming,
  from: ReadingFrom,
  stream: OpenStream,
): AsyncGenerator<string> {
  try {
    yield `retry: ${retryMs}\n\n`;
    yield* follow(services, from, stream);
  } catch (error) {
    // The reader gets the error when it reconnects.
    if (!(error instanceof ApiError)) throw error;
  }
}
