import { z } from 'zod';
import type { Principal, ServicePrincipal } from '../../access/principal.ts';
import { endpoint } from '../../http/endpoint.ts';
import { StreamedText, streamResponse } from '../../http/media.ts';
import { listQuery, queryNumber } from '../../http/schemas.ts';
import { asksForStream, envelopeResponse, sequenceText } from './event.ts';
import { readingPosition, readOn, streamEvents } from './public.ts';

const limitDefault = 100;
const limitMax = 1_000;
const eventStream = 'text/event-stream';

/** Users see the events of their organization, services those of the system. */
function orgIdOf(caller: Principal | ServicePrincipal): string | null {
  return caller.kind === 'service' ? null : caller.orgId;
}

/** Rules: EVENT-11 to EVENT-15. */
export const listEvents = endpoint({
  method: 'GET',
  path: '/events',
  tag: 'Events',
  summary: 'Read events in the order in which they happened, as pages or as they come',
  errors: [410],
  policy: { who: 'admin', scope: 'org:admin', orService: 'EVENTS_READ' },
  tool: {
    name: 'list_events',
    title: 'Read events',
    query: { limit: '25' },
    description:
      'Events of the organization and its users, in order, a page at a time (25 by default); continue with ' +
      'after: nextAfter of the page before.',
  },
  query: listQuery({
    after: sequenceText
      .optional()
      .describe('Only events with a greater sequence; without it, from the oldest event kept'),
    limit: queryNumber({ min: 1, max: limitMax }).default(limitDefault).describe('How many events a page has at most'),
  }),
  headers: z.object({
    accept: z.string().max(1_000).optional().describe(`\`${eventStream}\` asks for events as they happen`),
    'last-event-id': z
      .union([z.literal('').transform(() => undefined), sequenceText])
      .optional()
      .describe('The sequence after which a stream continues; takes precedence over `after`'),
  }),
  response: {
    200: z.union([
      z.object({
        events: z.array(envelopeResponse),
        nextAfter: z.int().describe('The value of `after` for the next page'),
      }),
      streamResponse(eventStream),
    ]),
  },
  async handle(services, { caller, query: { after, limit }, headers }) {
    const { db } = services;
    const orgId = orgIdOf(caller);
    if (asksForStream(headers.accept)) {
      const position = await readingPosition(db.read, headers['last-event-id'] ?? after);
      return new StreamedText(eventStream, (stream) => streamEvents(services, { position, orgId }, stream));
    }
    const position = await readingPosition(db.read, after);
    const events = (await readOn(db.read, { after: position, limit, orgId })).map(({ envelope }) => envelope);
    return { events, nextAfter: events.at(-1)?.sequence ?? position };
  },
});
