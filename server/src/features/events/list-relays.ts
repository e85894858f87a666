import { z } from 'zod';
import { selectAuditEnd } from '../../audit-log/audit-events.ts';
import { endpoint } from '../../http/endpoint.ts';
import { listQuery } from '../../http/schemas.ts';
import { auditStream } from '../../outbox/envelope.ts';
import { readSpan } from '../../outbox/event-log.ts';
import { countDeadLetters, selectRelays } from '../../outbox/relay/relay-store.ts';
import { isSubscriptionTo } from '../../outbox/relay/subscription.ts';
import { relayState, toRelayState } from './relay-state.ts';

/** Rule: EVENT-28. */
export const listRelays = endpoint({
  method: 'GET',
  path: '/events/relays',
  tag: 'Events',
  summary: 'The state of each subscription: those of the broker, and of each webhook',
  policy: { who: 'admin', scope: 'org:admin' },
  tool: { name: 'list_event_relays', title: 'How events go out' },
  query: listQuery({}),
  response: {
    200: z.object({
      oldest: z.int().describe('The sequence of the oldest event kept; one more than newest where there is none'),
      newest: z.int().describe('The sequence of the last event'),
      relays: z.array(relayState),
    }),
  },
  async handle({ db, relays }) {
    const { oldest, newest } = await readSpan(db.read);
    const auditEnd = await selectAuditEnd(db.read);
    const dead = await countDeadLetters(db.read);
    const served = new Set(relays.names());
    const states = (await selectRelays(db.read)).map((stored) =>
      toRelayState(stored, {
        isServed: served.has(stored.name),
        newest: isSubscriptionTo(auditStream, stored.name) ? auditEnd : newest,
        deadLetters: dead.get(stored.name) ?? 0,
      }),
    );
    return { oldest, newest, relays: states };
  },
});
