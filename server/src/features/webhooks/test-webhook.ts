import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { endpoint } from '../../http/endpoint.ts';
import { id } from '../../http/schemas.ts';
import { toMessage } from '../../outbox/envelope.ts';
import { recordAttempt, requireWebhook, targetOf } from './public.ts';
import { attemptRecord, testEventType } from './webhook.ts';

/** Rules: EVENT-24, EVENT-27. */
export const testWebhook = endpoint({
  method: 'POST',
  path: '/webhooks/:webhookId/test',
  tag: 'Webhooks',
  summary: 'Send a test message at once, also to a webhook that is off, and return the outcome',
  policy: { who: 'admin', scope: 'org:admin' },
  params: z.object({ webhookId: id }),
  response: {
    200: attemptRecord
      .pick({ eventId: true, durationMs: true, status: true, reason: true })
      .extend({ isDelivered: z.boolean() }),
  },
  async handle(services, { caller, write, params: { webhookId: subjectId }, origin }) {
    const { clock, config, newId } = services;
    const { orgId, userId } = caller;
    await services.limits.count('testMail', userId);
    const webhook = await write(async (tx) => {
      const found = await requireWebhook(tx, services, subjectId);
      await appendAudit(tx, services, { action: 'webhook.tested', orgId, actor: caller, subjectId, origin });
      return found;
    });
    const event = { eventType: testEventType, timestamp: clock.now(), payload: { orgId }, id: newId(), sequence: 0 };
    const form = { format: config.eventsFormat, source: config.baseUrl };
    const message = { id: event.id, ...toMessage({ key: orgId, envelope: event }, form) };
    // By a connection of its own, so that it waits for no event.
    const target = { ...(await targetOf(services, webhook)), id: event.id };
    const attempt = await services.webhooks.send(target, message);
    await services.webhooks.forget(event.id);
    await recordAttempt(services, subjectId, { event: { ...event, sequence: null }, attempt });
    const { durationMs, status, failure } = attempt;
    return { eventId: event.id, durationMs, status, reason: failure?.reason ?? null, isDelivered: failure === null };
  },
});
