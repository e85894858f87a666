import { z } from 'zod';
import { endpoint } from '../../http/endpoint.ts';
import { id } from '../../http/schemas.ts';
import { requireWebhook } from './public.ts';
import { toWebhookRecord, webhookRecord } from './webhook.ts';

/** Rules: EVENT-18, EVENT-25. */
export const getWebhook = endpoint({
  method: 'GET',
  path: '/webhooks/:webhookId',
  tag: 'Webhooks',
  summary: 'Get a webhook, without its secret',
  policy: { who: 'admin', scope: 'org:admin' },
  params: z.object({ webhookId: id }),
  response: { 200: webhookRecord },
  async handle(services, { params: { webhookId } }) {
    const { db, clock } = services;
    return toWebhookRecord(await requireWebhook(db.read, services, webhookId), clock.now());
  },
});
