import { z } from 'zod';
import { endpoint } from '../../http/endpoint.ts';
import { pageOf, pageQuery, pagination, toPagination } from '../../http/paging.ts';
import { components, listQuery } from '../../http/schemas.ts';
import { selectDeadLetters } from '../../outbox/relay/relay-store.ts';
import { findEvents } from './public.ts';
import { deadLetter, toDeadLetter } from './relay-state.ts';

/** Rule: EVENT-23. */
export const listDeadLetters = endpoint({
  method: 'GET',
  path: '/events/dead-letters',
  tag: 'Events',
  summary: 'Events that a destination refused and that were set aside',
  policy: { who: 'admin', scope: 'org:admin' },
  query: listQuery({ ...pageQuery, relay: z.string().max(200).optional().describe('Only those of this subscription') }),
  response: {
    200: z.object({ deadLetters: z.array(deadLetter), pagination }).register(components, { id: 'DeadLetterPage' }),
  },
  async handle({ db }, { query: { relay, ...query } }) {
    const page = pageOf(query);
    const { total, letters } = await selectDeadLetters(db.read, { relay, ...page });
    const events = await findEvents(db.read, letters);
    return {
      deadLetters: letters.map((deadLetter) => toDeadLetter(deadLetter, events.get(deadLetter.id) ?? null)),
      pagination: toPagination(page, total),
    };
  },
});
