import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { changesBetween } from '../../audit-log/changes.ts';
import { endpoint } from '../../http/endpoint.ts';
import { id, messageResponse } from '../../http/schemas.ts';
import { removeWebhook, requireWebhook } from './public.ts';
import { recordedOf } from './webhook.ts';

/** Rule: EVENT-18. */
export const deleteWebhook = endpoint({
  method: 'DELETE',
  path: '/webhooks/:webhookId',
  tag: 'Webhooks',
  summary: 'Delete a webhook; pending events are not sent',
  policy: { who: 'admin', scope: 'org:admin' },
  params: z.object({ webhookId: id }),
  response: { 200: messageResponse },
  async handle(services, { caller, write, params: { webhookId: subjectId }, origin }) {
    const { orgId } = caller;
    await write(async (tx) => {
      const changes = changesBetween(recordedOf(await requireWebhook(tx, services, subjectId)), null);
      await removeWebhook(tx, subjectId);
      await appendAudit(tx, services, { action: 'webhook.deleted', orgId, actor: caller, subjectId, origin, changes });
    });
    await services.webhooks.forget(subjectId);
    return { message: 'Webhook deleted successfully' };
  },
});
