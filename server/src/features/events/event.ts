import { z } from 'zod';
import { components, idResponse } from '../../http/schemas.ts';

/** An event as consumers get it. Rule: EVENT-1. */
export const envelopeResponse = z.object({
  eventType: z.string(),
  timestamp: z.int().describe('Milliseconds since 1970'),
  payload: z.record(z.string(), z.unknown()),
  id: idResponse,
  sequence: z.int(),
});
components.add(envelopeResponse, { id: 'EventEnvelope' });

/** A sequence number in the query or in a header: as text, without sign or padding. */
export const sequenceText = z
  .string()
  .regex(/^(0|[1-9]\d{0,14})$/, 'must be the sequence of an event')
  .transform(Number)
  .meta({ type: 'integer', minimum: 0 });

const unwanted = /^q=0(\.0*)?$/;

/**
 * Returns whether an Accept header asks for server-sent events: by name, and not with a weight of zero. Rule: EVENT-13.
 */
export function asksForStream(accept: string | undefined): boolean {
  const ranges = (accept ?? '').toLowerCase().split(',');
  return ranges.some((range) => {
    const [type, ...parameters] = range.split(';').map((part) => part.trim());
    return type === 'text/event-stream' && !parameters.some((parameter) => unwanted.test(parameter));
  });
}

/** An event in the form of server-sent events: its sequence, its type, and the envelope in one line. Rule: EVENT-13. */
export function toServerSent(envelope: z.output<typeof envelopeResponse>): string {
  return `id: ${envelope.sequence}\nevent: ${envelope.eventType}\ndata: ${JSON.stringify(envelope)}\n\n`;
}
