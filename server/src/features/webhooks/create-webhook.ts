import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { changesBetween } from '../../audit-log/changes.ts';
import { ApiError } from '../../base/errors.ts';
import { endpoint } from '../../http/endpoint.ts';
import { readSpan } from '../../outbox/event-log.ts';
import { insertRelay } from '../../outbox/relay/relay-store.ts';
import { createRawWebhookSecret } from '../../outbox/webhook-delivery/signature.ts';
import { encryptWebhookSecret, relayOf, requireAfter, requireUrl, requireWebhook } from './public.ts';
import {
  eventFilter,
  recordedOf,
  sequence,
  toWebhookRecord,
  webhookDescription,
  webhookRecord,
  webhooksMax,
  webhookUrl,
} from './webhook.ts';
import { insertWebhook, selectWebhooks } from './webhook-store.ts';

/** Rules: EVENT-18, EVENT-24, EVENT-25, SCOPE-26. */
export const createWebhook = endpoint({
  method: 'POST',
  path: '/webhooks',
  tag: 'Webhooks',
  summary: 'Send events to an address; the secret that signs them is shown in this response only',
  errors: [409],
  policy: { who: 'admin', scope: 'org:admin' },
  body: z.strictObject({
    url: webhookUrl,
    description: webhookDescription.optional(),
    events: eventFilter.optional().describe('The types of event to send; absent and null: all'),
    after: sequence.optional().describe('Begin after this sequence; absent: with the next event'),
  }),
  response: { 201: webhookRecord.extend({ secret: z.string().describe('whsec_ and base64, as receivers take it') }) },
  location: ({ id }) => `/webhooks/${id}`,
  async handle(services, { caller, write, body, origin }) {
    const { newId, clock } = services;
    const { orgId, userId } = caller;
    const [id, secret, url] = [newId(), createRawWebhookSecret(), requireUrl(services, body.url)];
    const encrypted = await encryptWebhookSecret(services, secret);
    const made = await write(async (tx) => {
      const nowMs = clock.now();
      if ((await selectWebhooks(tx, nowMs)).length >= webhooksMax) {
        throw new ApiError('tooManyWebhooks', { params: { max: webhooksMax } });
      }
      const span = await readSpan(tx);
      if (body.after !== undefined) requireAfter(body.after, { ...span, max: span.newest });
      await insertWebhook(tx, {
        id,
        org_id: orgId,
        url,
        description: body.description ?? null,
        events: body.events?.join(' ') ?? null,
        secret: encrypted,
        created_by: userId,
        created_by_token: caller.kind === 'token' ? caller.tokenId : null,
        created_at: nowMs,
        updated_at: nowMs,
      });
      await insertRelay(tx, relayOf(id), body.after ?? span.newest);
      const webhook = await requireWebhook(tx, services, id);
      const changes = changesBetween(null, recordedOf(webhook));
      const record = { action: 'webhook.created', orgId, actor: caller, subjectId: id, origin, changes } as const;
      await appendAudit(tx, services, record);
      return webhook;
    });
    return { ...toWebhookRecord(made, clock.now()), secret: secret.expose() };
  },
});
