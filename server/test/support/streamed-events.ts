import pino from 'pino';
import { Secret } from '../../src/base/secret.ts';
import { type Broker, type BrokerParts, openBroker } from '../../src/outbox/brokers/broker.ts';
import type { StreamedEvent } from '../../src/outbox/envelope.ts';

/** The organization of events that name none. */
export const orgId = 'a0'.repeat(12);

/** Event ids as they are: 24 hexadecimal characters. */
export function eventId(sequence: number): string {
  return sequence.toString(16).padStart(24, '0');
}

/** An event of this sequence. */
export function streamed(sequence: number, { key = orgId, text = 'Ada' } = {}): StreamedEvent {
  return {
    key,
    envelope: {
      eventType: 'userAdded',
      timestamp: 1_796_000_000_000 + sequence,
      payload: { orgId: key, userId: eventId(sequence), email: `u${sequence}@example.com`, fullName: text },
      id: eventId(sequence),
      sequence,
    },
  };
}

/** Events from one sequence to another, both included. */
export function streamedRange(from: number, to: number): readonly StreamedEvent[] {
  return Array.from({ length: to - from + 1 }, (_, place) => streamed(from + place));
}

/** Returns the first occurrences in a list: what a consumer keeps that drops duplicates. */
export function firstOnes<T>(list: readonly T[]): readonly T[] {
  return [...new Set(list)];
}

interface BrokerOptions {
  readonly form?: BrokerParts['form'];
  /** Gets the lines of the log. */
  readonly lines?: string[];
  readonly retentionDays?: number;
  readonly ca?: string;
}

const envelopes = () => ({ format: 'envelope', source: 'https://id.example' }) as const;

/** A broker of the product at an address. */
export function openedBroker(
  url: string,
  { form = envelopes, lines = [], retentionDays = 30, ca }: BrokerOptions = {},
): Broker {
  const log = pino({ base: null }, { write: (line) => void lines.push(line) });
  const trusted = ca === undefined ? {} : { ca };
  return openBroker({ url: new Secret(url), log, form, retentionDays: () => retentionDays, ...trusted });
}
