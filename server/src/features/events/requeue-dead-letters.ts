import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { endpoint } from '../../http/endpoint.ts';
import { ids } from '../../http/schemas.ts';
import { updateRequeued } from '../../outbox/relay/relay-store.ts';

/** Rule: EVENT-23. */
export const requeueDeadLetters = endpoint({
  method: 'POST',
  path: '/events/dead-letters/requeue',
  tag: 'Events',
  summary: 'Requeue dead letters: some, those of one subscription, or all',
  policy: { who: 'admin', scope: 'org:admin' },
  body: z.strictObject({
    ids: ids.optional(),
    relay: z
      .string()
      .max(200)
      .optional()
      .meta({ examples: ['entity-events/broker'] }),
  }),
  response: {
    200: z.object({
      requeued: z.int().describe('The number of requeued events; those that are no dead letters are left out'),
    }),
  },
  async handle(services, { caller, write, body, origin }) {
    return write(async (tx) => {
      const requeued = await updateRequeued(tx, { ...body, nowMs: services.clock.now() });
      if (requeued > 0) {
        await appendAudit(tx, services, {
          action: 'dead-letters.requeued',
          orgId: caller.orgId,
          actor: caller,
          subjectId: null,
          origin,
          details: { requeued, relay: body.relay ?? null },
        });
      }
      return { requeued };
    });
  },
});
