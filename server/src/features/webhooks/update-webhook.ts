import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { changesBetween } from '../../audit-log/changes.ts';
import { endpoint } from '../../http/endpoint.ts';
import { id } from '../../http/schemas.ts';
import { updateRetryNow } from '../../outbox/relay/relay-store.ts';
import { relayOf, requireMaker, requireUrl, requireWebhook } from './public.ts';
import {
  eventFilter,
  recordedOf,
  type StoredWebhook,
  toWebhookRecord,
  webhookDescription,
  webhookRecord,
  webhookUrl,
} from './webhook.ts';
import { updateWebhook as updateRow } from './webhook-store.ts';

const body = z.strictObject({
  url: webhookUrl.optional(),
  description: webhookDescription.optional(),
  events: eventFilter.optional().describe('The types of event to send; null: all'),
  enabled: z
    .boolean()
    .optional()
    .describe('false: nothing is sent; true: pending events are sent at once, from where it stopped')
    .meta({ examples: [true] }),
});

/** Returns the changed columns of the row; absent fields stay. */
function columnsOf(
  { description, events, enabled }: z.output<typeof body>,
  {
    webhook,
    url,
    by,
    nowMs,
  }: { readonly webhook: StoredWebhook; readonly url: string | undefined; readonly by: string; readonly nowMs: number },
) {
  const on = { off_reason: null, off_at: null };
  const off = { off_reason: webhook.offReason ?? ('administrator' as const), off_at: webhook.offAt ?? nowMs };
  const state = enabled ? on : off;
  return {
    ...(url === undefined ? {} : { url, ...(url === webhook.url ? {} : { address_by: by }) }),
    ...(description === undefined ? {} : { description }),
    ...(events === undefined ? {} : { events: events?.join(' ') ?? null }),
    ...(enabled === undefined ? {} : state),
  };
}

/** Rules: EVENT-18, EVENT-24, EVENT-26, LEAVER-4, SCOPE-26. */
export const updateWebhook = endpoint({
  method: 'PATCH',
  path: '/webhooks/:webhookId',
  tag: 'Webhooks',
  summary: 'Change a webhook, or switch it off and on',
  policy: { who: 'admin', scope: 'org:admin' },
  params: z.object({ webhookId: id }),
  body,
  response: { 200: webhookRecord },
  async handle(services, { caller, write, params: { webhookId }, body: input, origin }) {
    const { clock } = services;
    const { orgId } = caller;
    const url = input.url && requireUrl(services, input.url);
    const changed = await write(async (tx) => {
      const nowMs = clock.now();
      const before = await requireWebhook(tx, services, webhookId);
      const moves = url !== undefined && url !== before.url;
      if (moves) requireMaker(caller, before);
      const columns = columnsOf(input, { webhook: before, url, by: caller.userId, nowMs });
      if (Object.keys(columns).length > 0) await updateRow(tx, webhookId, columns);
      // Earlier failures were at another address, or have been dealt with.
      if (moves || input.enabled) await updateRetryNow(tx, relayOf(webhookId));
      const changes = changesBetween(recordedOf(before), recordedOf(await requireWebhook(tx, services, webhookId)));
      if (Object.keys(changes).length === 0) return before;
      await updateRow(tx, webhookId, { updated_at: nowMs });
      const subjectId = webhookId;
      await appendAudit(tx, services, { action: 'webhook.updated', orgId, actor: caller, subjectId, origin, changes });
      return requireWebhook(tx, services, webhookId);
    });
    return toWebhookRecord(changed, clock.now());
  },
});
