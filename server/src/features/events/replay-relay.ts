import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { ApiError } from '../../base/errors.ts';
import { endpoint } from '../../http/endpoint.ts';
import { messageResponse } from '../../http/schemas.ts';
import { auditStream } from '../../outbox/envelope.ts';
import { selectRelay, updateReplay } from '../../outbox/relay/relay-store.ts';
import { isSubscriptionTo } from '../../outbox/relay/subscription.ts';
import { readingPosition } from './public.ts';

/** Rules: EVENT-10, EVENT-27. */
export const replayRelay = endpoint({
  method: 'POST',
  path: '/events/relays/replay',
  operationId: 'replayEventRelay',
  tag: 'Events',
  summary: 'Send all events after a sequence again on one subscription',
  errors: [404, 410],
  policy: { who: 'admin', scope: 'org:admin' },
  body: z.strictObject({
    relay: z
      .string()
      .max(200)
      .meta({ examples: ['entity-events/broker'] }),
    after: z
      .int()
      .min(0)
      .describe('Events with a greater sequence are sent again, and then those that follow')
      .meta({ examples: [0] }),
  }),
  response: { 200: messageResponse },
  async handle(services, { caller, write, body: { relay, after }, origin }) {
    return write(async (tx) => {
      const before = await selectRelay(tx, relay);
      if (!before) throw new ApiError('notFound');
      // The audit log is kept whole.
      const position = isSubscriptionTo(auditStream, relay) ? after : await readingPosition(tx, after);
      await updateReplay(tx, relay, Math.min(position, before.position));
      await appendAudit(tx, services, {
        action: 'relay.replayed',
        orgId: caller.orgId,
        actor: caller,
        subjectId: null,
        origin,
        details: { relay },
        changes: { position: { before: before.position, after: Math.min(position, before.position) } },
      });
      return { message: 'Events are sent again' };
    });
  },
});
