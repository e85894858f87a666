import { z } from 'zod';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { second } from '../../base/clock.ts';
import { ApiError } from '../../base/errors.ts';
import { hashCredential } from '../../base/secret.ts';
import { endpoint } from '../../http/endpoint.ts';
import type { Services } from '../../services.ts';
import { clientCredentials, clientHeaders, oauthBody, refuseClient } from './client-credentials.ts';
import { type ProvedClient, presentScopes, reauthorizeClient, requireClient } from './public.ts';
import { grantedScopes, serviceTokenMs } from './service-client.ts';
import { insertServiceToken } from './service-client-store.ts';

/**
 * Returns the scopes of the token that a client asks for. Once the organization is deleted, all but the remaining ones
 * are 401. Rule: ORG-27.
 */
async function scopesFor({ db }: Pick<Services, 'db'>, client: ProvedClient, asked: string | undefined) {
  const present = await presentScopes(db.read, client.scopes);
  const isCut = present.length < client.scopes.length;
  const scopes = grantedScopes(asked, present);
  if (isCut && (scopes === null || scopes.length === 0)) throw refuseClient();
  if (!scopes) throw new ApiError('serviceScopeInvalid', { params: { scopes: client.scopes.join(' ') } });
  return scopes;
}

/** Rules: ERR-5, LEAVER-8, ORG-27, SERVICE-11 to SERVICE-13, SERVICE-17, SERVICE-20 (RFC 6749, section 4.4). */
export const issueToken = endpoint({
  method: 'POST',
  path: '/oauth2/token',
  operationId: 'issueServiceToken',
  tag: 'Services',
  summary: 'Get a scoped token, as a registered service: client credentials grant, as a form or as JSON',
  policy: { who: 'anyone', writesBy: 'clientSecret' },
  boundedBy: 'serviceToken',
  isOAuth: true,
  headers: clientHeaders,
  body: oauthBody({
    ...clientCredentials,
    grant_type: z
      .string()
      .max(100)
      .meta({ examples: ['client_credentials'] }),
    scope: z
      .string()
      .max(1_000)
      .optional()
      .describe('Separated by spaces; without it, all that the client has. An empty one is refused')
      .meta({ examples: ['USER_LOOKUP'] }),
  }),
  response: {
    200: z.object({
      access_token: z.string(),
      token_type: z.literal('Bearer'),
      expires_in: z.int().describe('Seconds'),
      scope: z.string(),
    }),
  },
  async handle(services, { headers, body, origin }) {
    const { db, keys, newId, clock, config, limits } = services;
    const client = await requireClient(services, headers.authorization, body);
    if (body.grant_type !== 'client_credentials') throw new ApiError('grantUnsupported');
    const scopes = await scopesFor(services, client, body.scope);
    await limits.count('serviceToken', client.id);
    const iat = Math.floor(clock.now() / second);
    // The stated lifetime must not exceed that of the client.
    const seconds = Math.min(serviceTokenMs / second, Math.floor(client.endsAtMs / second) - iat);
    const [expiresAtMs, scope] = [(iat + seconds) * second, scopes.join(' ')];
    const claims = { client_id: client.id, sub: client.id, scope, scopes, iss: config.baseUrl, iat, jti: newId() };
    const token = await keys.sign({ ...claims, exp: expiresAtMs / second, tokenType: 'scoped' });
    await db.transaction(async (tx) => {
      const endsAtMs = await reauthorizeClient(tx, services, { client, scopes });
      const row = { client_id: client.id, scopes: scope, created_at: clock.now() };
      const expires_at = Math.min(expiresAtMs, endsAtMs);
      await insertServiceToken(tx, { ...row, hash: hashCredential(token.expose()), expires_at });
      const actor = { clientId: client.id };
      const record = { orgId: client.orgId, actor, subjectId: client.id, origin, details: { scope } };
      await appendAudit(tx, services, { ...record, action: 'service.token-issued' });
    });
    return { access_token: token.expose(), token_type: 'Bearer' as const, expires_in: seconds, scope };
  },
});
