import { z } from 'zod';
import type { EventType } from '../../outbox/envelope.ts';
import type { DomainEvent } from '../../outbox/outbox.ts';
import { idResponse } from '../schemas.ts';

type Json = Record<string, unknown>;
type PayloadOf<E extends EventType> = Extract<DomainEvent, { eventType: E }>['payload'];
/** A schema for exactly the members of a payload. */
type PayloadSchema<P> = z.ZodObject<{ [K in keyof P]-?: z.ZodType<P[K]> }>;

const orgId = idResponse;
const userId = idResponse;
const text = z.string();
const maybeText = z.string().exactOptional();

const events: {
  readonly [E in EventType]: { readonly summary: string; readonly payload: PayloadSchema<PayloadOf<E>> };
} = {
  orgCreated: {
    summary: 'An organization was created or restored',
    payload: z.object({ orgId, accountType: text, registeredName: maybeText }),
  },
  orgUpdated: {
    summary: 'An organization was changed',
    payload: z.object({ orgId, registeredName: maybeText }),
  },
  orgDeleted: { summary: 'An organization was deleted', payload: z.object({ orgId }) },
  userAdded: {
    summary: 'A user was added or restored',
    payload: z.object({
      orgId,
      userId,
      email: text,
      fullName: maybeText,
      syncAction: z.enum(['none', 'immediate']),
    }),
  },
  userUpdated: {
    summary: 'A user was changed',
    payload: z.object({
      orgId,
      userId,
      email: text,
      emailVerified: z.literal(false).exactOptional(),
      fullName: text,
      firstName: maybeText,
      middleName: maybeText,
      lastName: maybeText,
      designation: maybeText,
    }),
  },
  userDeleted: { summary: 'A user was deleted', payload: z.object({ orgId, userId, email: text }) },
};

const signed = {
  'webhook-id': 'The id of the event, the same in each attempt',
  'webhook-timestamp': 'Seconds since 1970, of this attempt',
  'webhook-signature': 'Signatures of Standard Webhooks: v1, and base64, with spaces between several',
};

/** Returns the messages that webhooks get, by type of event; `schemaOf` makes the schema of their body. Rule: FIT-124. */
export function webhooks(schemaOf: (schema: z.ZodType) => unknown): Json {
  const parameters = Object.entries(signed).map(([name, description]) => ({
    name,
    in: 'header',
    description,
    required: true,
    schema: { type: 'string' },
  }));
  const all = Object.entries(events).map(([eventType, { summary, payload }]) => {
    const body = z.object({
      eventType: z.literal(eventType),
      timestamp: z.int().describe('Milliseconds since 1970'),
      payload,
      id: idResponse,
      sequence: z.int(),
    });
    const post = {
      operationId: `on${eventType.charAt(0).toUpperCase()}${eventType.slice(1)}`,
      tags: ['Webhooks'],
      summary,
      security: [],
      parameters,
      requestBody: { required: true, content: { 'application/json': { schema: schemaOf(body) } } },
      responses: { '200': { description: 'Taken, as by any 2xx; after anything else it is sent again' } },
    };
    return [eventType, { post }] as const;
  });
  return Object.fromEntries<unknown>(all);
}
