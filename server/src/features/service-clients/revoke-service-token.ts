import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { hashCredential } from '../../base/secret.ts';
import { endpoint } from '../../http/endpoint.ts';
import { clientHeaders, tokenBody } from './client-credentials.ts';
import { requireClient } from './public.ts';
import { updateServiceTokenRevoked } from './service-client-store.ts';

/** Rules: ERR-5, SERVICE-16, SERVICE-17 (RFC 7009). Tokens of other clients are treated as unknown. */
export const revokeServiceToken = endpoint({
  method: 'POST',
  path: '/oauth2/revoke',
  tag: 'Services',
  summary: 'Revoke a scoped token that the same service got; the response is the same for any other token',
  policy: { who: 'anyone', writesBy: 'clientSecret' },
  boundedBy: 'ends what there is',
  isOAuth: true,
  headers: clientHeaders,
  body: tokenBody,
  response: { 200: z.object({}) },
  async handle(services, { headers, body, origin }) {
    const client = await requireClient(services, headers.authorization, body);
    const which = { hash: hashCredential(body.token), clientId: client.id, nowMs: services.clock.now() };
    await services.db.transaction(async (tx) => {
      if (!(await updateServiceTokenRevoked(tx, which))) return;
      const actor = { clientId: client.id };
      const record = { orgId: client.orgId, actor, subjectId: client.id, origin };
      await appendAudit(tx, services, { ...record, action: 'service.token-revoked' });
    });
    return {};
  },
});
