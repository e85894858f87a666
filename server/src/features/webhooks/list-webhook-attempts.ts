import { z } from 'zod';
import { endpoint } from '../../http/endpoint.ts';
import { id, idResponse, listQuery, queryNumber } from '../../http/schemas.ts';
import { requireWebhook } from './public.ts';
import { attemptRecord, toAttemptRecord } from './webhook.ts';
import { selectAttempts } from './webhook-store.ts';

const limitMax = 100;

/** Rule: EVENT-27. */
export const listWebhookAttempts = endpoint({
  method: 'GET',
  path: '/webhooks/:webhookId/attempts',
  tag: 'Webhooks',
  summary: 'List the attempts of a webhook and their outcomes, newest first, test messages included',
  policy: { who: 'admin', scope: 'org:admin' },
  params: z.object({ webhookId: id }),
  query: listQuery({
    cursor: id.optional().describe('nextCursor of the page before; absent: the newest'),
    limit: queryNumber({ min: 1, max: limitMax }).default(limitMax).describe('How many attempts a page has'),
  }),
  response: {
    200: z.object({
      attempts: z.array(attemptRecord),
      nextCursor: idResponse.nullable().describe('null: the last page'),
    }),
  },
  async handle(services, { params: { webhookId }, query: { cursor: before, limit } }) {
    const { db } = services;
    await requireWebhook(db.read, services, webhookId);
    // One more than asked for, which tells whether there is another page.
    const found = await selectAttempts(db.read, { webhookId, before, limit: limit + 1 });
    const attempts = found.slice(0, limit).map(toAttemptRecord);
    return { attempts, nextCursor: found.length > limit ? (attempts.at(-1)?.id ?? null) : null };
  },
});
