import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { toTimestamp } from '../../base/clock.ts';
import { endpoint } from '../../http/endpoint.ts';
import { id, timestamp } from '../../http/schemas.ts';
import { createRawWebhookSecret } from '../../outbox/webhook-delivery/signature.ts';
import { encryptWebhookSecret, requireMaker, requireWebhook } from './public.ts';
import { earlierSecretMs } from './webhook.ts';
import { updateWebhook } from './webhook-store.ts';

/** Rules: EVENT-25, LEAVER-4, SCOPE-26. */
export const rotateWebhookSecret = endpoint({
  method: 'POST',
  path: '/webhooks/:webhookId/rotate-secret',
  tag: 'Webhooks',
  summary:
    'Create a new secret, shown in this response only; for 24 hours messages are signed with the earlier one too',
  policy: { who: 'admin', scope: 'org:admin' },
  params: z.object({ webhookId: id }),
  response: { 200: z.object({ secret: z.string(), earlierSecretUntil: timestamp }) },
  async handle(services, { caller, write, params: { webhookId: subjectId }, origin }) {
    const { clock } = services;
    const { orgId } = caller;
    const secret = createRawWebhookSecret();
    const encrypted = await encryptWebhookSecret(services, secret);
    const until = await write(async (tx) => {
      const webhook = await requireWebhook(tx, services, subjectId);
      requireMaker(caller, webhook);
      const nowMs = clock.now();
      const earlier = { earlier_secret: webhook.secret, earlier_secret_until: nowMs + earlierSecretMs };
      await updateWebhook(tx, subjectId, {
        secret: encrypted,
        secret_by: caller.userId,
        ...earlier,
        updated_at: nowMs,
      });
      const record = { action: 'webhook.secret-rotated', orgId, actor: caller, subjectId, origin } as const;
      await appendAudit(tx, services, record);
      return earlier.earlier_secret_until;
    });
    return { secret: secret.expose(), earlierSecretUntil: toTimestamp(until) };
  },
});
