import { z } from 'zod';
import { validate } from '../../access/authenticator.ts';
import { readBearer } from '../../access/bearer.ts';
import type { CredentialRecord, ServicePrincipal } from '../../access/principal.ts';
import { scopedTokenReader } from '../../access/scoped-tokens.ts';
import { second } from '../../base/clock.ts';
import { ApiError } from '../../base/errors.ts';
import { hashCredential } from '../../base/secret.ts';
import { isOrganizationDeleted } from '../../db/members/organization.ts';
import { endpoint } from '../../http/endpoint.ts';
import type { Services } from '../../services.ts';
import { findSession } from '../sessions/public.ts';
import { findToken } from '../tokens/public.ts';
import { clientHeaders, tokenBody } from './client-credentials.ts';
import { findServiceToken, requireClient } from './public.ts';

const response = z.object({
  active: z.boolean(),
  scope: z.string().optional().describe('Separated by spaces; a session has none, and is not bound by any'),
  client_id: z.string().optional(),
  token_type: z.literal('Bearer').optional(),
  exp: z.int().optional().describe('Seconds since 1970; absent: never'),
  sub: z.string().optional().describe('The user, or the service'),
  iss: z.string().optional(),
  orgId: z.string().optional(),
  tokenType: z.enum(['oauth', 'session', 'scoped']).optional(),
});
type Introspection = z.output<typeof response>;

const inactive: Introspection = { active: false };

function userResponse(held: CredentialRecord, { clock, config, tokenUses }: Services): Introspection {
  const nowMs = clock.now();
  const principal = validate(held, nowMs);
  // Rule: CRED-9. A service that learns that it is valid lets its owner in.
  if (principal.kind === 'token') tokenUses.touch(principal.tokenId, nowMs);
  const { userId: sub, orgId } = principal;
  const exp = held.expiresAtMs === null ? {} : { exp: Math.floor(held.expiresAtMs / second) };
  const common = { active: true, token_type: 'Bearer', sub, orgId, iss: config.baseUrl, ...exp } as const;
  if (principal.kind === 'session') return { ...common, tokenType: 'session' };
  return { ...common, tokenType: 'oauth', scope: [...principal.scopes].join(' '), client_id: `pat-system:${orgId}` };
}

function serviceResponse({ clientId, scopes, expiresAtMs }: ServicePrincipal, { config }: Services): Introspection {
  // A name with a space in it would be read as two that were never granted.
  const scope = [...scopes].filter((name) => !name.includes(' ')).join(' ');
  const exp = Math.floor(expiresAtMs / second);
  const common = { active: true, token_type: 'Bearer', tokenType: 'scoped', scope, exp } as const;
  return clientId === null ? common : { ...common, client_id: clientId, sub: clientId, iss: config.baseUrl };
}

/** Returns the present state of a token, as its next verification would find it. */
async function describeToken(services: Services, token: string): Promise<Introspection> {
  const { config, clock } = services;
  const header = `Bearer ${token}`;
  const proveService = scopedTokenReader({
    secret: () => config.scopedSharedSecret,
    clock,
    find: (hash) => findServiceToken(services, hash),
    isOrganizationDeleted: () => isOrganizationDeleted(services.db),
  });
  try {
    const hash = hashCredential(readBearer(header, config.displayPrefixes));
    const held = (await findToken(services, hash)) ?? (await findSession(services, hash));
    return held ? userResponse(held, services) : serviceResponse(await proveService(header), services);
  } catch (error) {
    // A token that verification would reject is not active, and the reason is not disclosed (RFC 7662, section 2.2).
    if (error instanceof ApiError && error.status === 401) return inactive;
    throw error;
  }
}

/** Rules: CRED-9, ERR-5, ORG-27, SERVICE-15, SERVICE-17, SERVICE-19 (RFC 7662). */
export const introspectToken = endpoint({
  method: 'POST',
  path: '/oauth2/introspect',
  operationId: 'introspectServiceToken',
  tag: 'Services',
  summary: 'Return whether a token is valid now, and its scopes; for services with TOKEN_INTROSPECT',
  policy: { who: 'anyone' },
  boundedBy: 'stores nothing',
  isOAuth: true,
  headers: clientHeaders,
  body: tokenBody,
  response: { 200: response },
  async handle(services, { headers, body }) {
    const client = await requireClient(services, headers.authorization, body);
    if (!client.scopes.includes('TOKEN_INTROSPECT')) throw new ApiError('introspectionNotAllowed');
    return describeToken(services, body.token);
  },
});
