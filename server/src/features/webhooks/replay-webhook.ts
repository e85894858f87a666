import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { ApiError } from '../../base/errors.ts';
import type { Tx } from '../../db/database.ts';
import { endpoint } from '../../http/endpoint.ts';
import { id, messageResponse } from '../../http/schemas.ts';
import { readEventById, readSpan } from '../../outbox/event-log.ts';
import { selectRelay, updateReplay, updateRetryNow, upsertDeadLetter } from '../../outbox/relay/relay-store.ts';
import type { Services } from '../../services.ts';
import { relayOf, requireAfter, requireWebhook } from './public.ts';
import { sequence } from './webhook.ts';

const body = z
  .strictObject({
    after: sequence.optional().describe('Move back: everything after this sequence is sent again'),
    eventId: id.optional().describe('Send this one event again, whatever the webhook asks for otherwise'),
  })
  .refine(
    ({ after, eventId }) => (after === undefined) !== (eventId === undefined),
    'must have either after or eventId',
  )
  .meta({ examples: [{ after: 0 }] });

/** Moves a webhook back to an event that is still kept. Rule: EVENT-10. */
async function moveBack(tx: Tx, relay: string, after: number): Promise<void> {
  const position = (await selectRelay(tx, relay))?.position ?? 0;
  requireAfter(after, { ...(await readSpan(tx)), max: position });
  await updateReplay(tx, relay, after);
}

/** Asks for one event again; throws `notFound` for one that is not kept. */
async function askAgain(
  tx: Tx,
  { clock, newId }: Services,
  asked: { readonly relay: string; readonly eventId: string },
) {
  const event = await readEventById(tx, asked.eventId);
  if (!event) throw new ApiError('notFound');
  const nowMs = clock.now();
  await upsertDeadLetter(tx, {
    id: newId(),
    relay: asked.relay,
    sequence: event.envelope.sequence,
    attempts: 0,
    last_error: null,
    created_at: nowMs,
    requeued_at: nowMs,
  });
  await updateRetryNow(tx, asked.relay);
}

/** Rules: EVENT-10, EVENT-27. */
export const replayWebhook = endpoint({
  method: 'POST',
  path: '/webhooks/:webhookId/replay',
  tag: 'Webhooks',
  summary: 'Have events sent again: everything after a sequence, or one event',
  policy: { who: 'admin', scope: 'org:admin' },
  params: z.object({ webhookId: id }),
  body,
  response: { 200: messageResponse },
  async handle(services, { caller, write, params: { webhookId: subjectId }, body: { after, eventId }, origin }) {
    const { orgId } = caller;
    await write(async (tx) => {
      await requireWebhook(tx, services, subjectId);
      const relay = relayOf(subjectId);
      if (after !== undefined) await moveBack(tx, relay, after);
      if (eventId !== undefined) await askAgain(tx, services, { relay, eventId });
      const details = eventId === undefined ? { after } : { eventId };
      await appendAudit(tx, services, { action: 'webhook.replayed', orgId, actor: caller, subjectId, origin, details });
    });
    return { message: 'The events will be sent again' };
  },
});
