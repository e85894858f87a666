import { z } from 'zod';
import { endpoint } from '../../http/endpoint.ts';
import { listQuery } from '../../http/schemas.ts';
import { toWebhookRecord, webhookRecord } from './webhook.ts';
import { selectWebhooks } from './webhook-store.ts';

/** Rules: EVENT-18, EVENT-25. */
export const listWebhooks = endpoint({
  method: 'GET',
  path: '/webhooks',
  tag: 'Webhooks',
  summary: 'List the webhooks, in order of creation, without their secrets',
  policy: { who: 'admin', scope: 'org:admin' },
  tool: { name: 'list_webhooks', title: 'List webhooks' },
  query: listQuery({}),
  response: { 200: z.object({ webhooks: z.array(webhookRecord) }) },
  async handle({ db, clock }) {
    const nowMs = clock.now();
    const all = await selectWebhooks(db.read, nowMs);
    return { webhooks: all.map((webhook) => toWebhookRecord(webhook, nowMs)) };
  },
});
