import { type EventsFormat, type StreamedEvent, toMessage } from '../envelope.ts';

/** Format of messages. Rules: EVENT-21, CONFIG-30. */
export interface MessageForm {
  readonly format: EventsFormat;
  /** The public address of this service. */
  readonly source: string;
}

/** An event as brokers get it. */
export interface BrokerMessage {
  readonly id: string;
  /** The organization; empty for what concerns the system as a whole. Rule: EVENT-2. */
  readonly key: string;
  readonly value: string;
  /** Facts that consumers can read without parsing the value. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Writes an event for a broker. Rules: EVENT-2, EVENT-16, EVENT-21. */
export function brokerMessage(event: StreamedEvent, form: MessageForm): BrokerMessage {
  const { key, envelope } = event;
  const { contentType, body } = toMessage(event, form);
  const headers = {
    'Content-Type': contentType,
    'Event-Id': envelope.id,
    'Event-Type': envelope.eventType,
    'Event-Sequence': String(envelope.sequence),
  };
  return { id: envelope.id, key, value: body, headers };
}
