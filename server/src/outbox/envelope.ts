/** The stream of what happens to organizations and users. Rule: EVENT-2. */
export const entityStream = 'entity-events';
/** Stream of the records of the audit log. Rule: AUDIT-1. */
export const auditStream = 'audit-events';

/** A stream of events: a topic, a subject or a stream, as the broker calls it. */
export type StreamName = typeof entityStream | typeof auditStream;

/** All of them. */
export const streamNames: readonly StreamName[] = [entityStream, auditStream];

/** The types of event on `entity-events`. Rules: EVENT-3 to EVENT-7. */
export const eventTypes = [
  'orgCreated',
  'orgUpdated',
  'orgDeleted',
  'userAdded',
  'userUpdated',
  'userDeleted',
] as const;

/** A type of event on `entity-events`. */
export type EventType = (typeof eventTypes)[number];

/** The envelope that every consumer gets, over every destination. Rule: EVENT-1. */
export interface Envelope {
  /** An `EventType`, or the action of an audit record. */
  readonly eventType: string;
  /** Milliseconds since 1970. */
  readonly timestamp: number;
  readonly payload: Readonly<Record<string, unknown>>;
  /** The same however often it is sent: 24 hexadecimal characters. */
  readonly id: string;
  /** Counts up in commit order, in each stream separately. */
  readonly sequence: number;
}

/** An envelope, with the key that messages are ordered by. */
export interface StreamedEvent {
  /** The organization; empty for what concerns the system as a whole. */
  readonly key: string;
  readonly envelope: Envelope;
}

/** The format of messages: our own envelope, or CloudEvents 1.0. */
export type EventsFormat = 'envelope' | 'cloudevents';

/** A message, independent of the destination. */
export interface Message {
  readonly contentType: string;
  readonly body: string;
}

const cloudEventsType = 'application/cloudevents+json; charset=utf-8';

/** Returns the subject of an event, as far as its payload has one. */
function subjectOf({ payload }: Envelope): string | undefined {
  const subject = payload['userId'] ?? payload['subjectId'] ?? payload['orgId'];
  return typeof subject === 'string' ? subject : undefined;
}

/**
 * Writes an event in the structured JSON form of CloudEvents 1.0, with the extensions `partitionkey` and `sequence`
 * of that standard. Types are those of the envelope below `io.latchkey`.
 * @param source the public address of this service
 */
function toCloudEvent({ key, envelope }: StreamedEvent, source: string): string {
  const subject = subjectOf(envelope);
  return JSON.stringify({
    specversion: '1.0',
    id: envelope.id,
    source,
    type: `io.latchkey.${envelope.eventType}`,
    ...(subject === undefined ? {} : { subject }),
    time: new Date(envelope.timestamp).toISOString(),
    datacontenttype: 'application/json',
    ...(key === '' ? {} : { partitionkey: key }),
    // Of one width, so that they sort as text, as the extension asks for.
    sequence: String(envelope.sequence).padStart(20, '0'),
    data: envelope.payload,
  });
}

/** Writes an event as a message. Rules: EVENT-1, EVENT-21. */
export function toMessage(
  event: StreamedEvent,
  { format, source }: { readonly format: EventsFormat; readonly source: string },
): Message {
  return format === 'cloudevents'
    ? { contentType: cloudEventsType, body: toCloudEvent(event, source) }
    : { contentType: 'application/json', body: JSON.stringify(event.envelope) };
}
