import { z } from 'zod';
import type { ForCaller } from '../../access/reauthorization.ts';
import type { Origin } from '../../base/origin.ts';
import { endpoint } from '../../http/endpoint.ts';
import { id, messageResponse } from '../../http/schemas.ts';
import type { Services } from '../../services.ts';
import { revokeReason, revokeToken } from './public.ts';

const reason = revokeReason
  .optional()
  .describe('Why, for the audit log and the list of administrators; the body counts before the query')
  .meta({ examples: ['Laptop lost'] });
const params = z.object({ tokenId: id.describe('Of the token') });
const query = z.strictObject({ reason });
const body = z.strictObject({ reason }).optional();
const response = { 200: messageResponse };

interface Revocation extends ForCaller {
  readonly tokenId: string;
  readonly reason: string;
  /** The user whose tokens may be revoked; `null`: any user's. */
  readonly ownerId: string | null;
  readonly origin: Origin;
}

/** Ends a token and its descendants, at once and for good. Rules: PAT-14, PAT-16, SCOPE-24. */
async function revoke(services: Services, { caller, write, tokenId, reason, ownerId, origin }: Revocation) {
  await write(async (tx) => {
    await revokeToken(tx, services, { tokenId, orgId: caller.orgId, ownerId, reason, actor: caller, origin });
  });
  return { message: 'Personal access token revoked successfully' };
}

/** Rules: PAT-13 to PAT-16, SCOPE-25. */
export const revokeOwnToken = endpoint({
  method: 'DELETE',
  path: '/personal-access-tokens/:tokenId',
  tag: 'Personal access tokens',
  summary: 'Revoke an own token',
  policy: { who: 'member', scope: 'token:write', selfParam: 'tokenId' },
  costs: 'nothing',
  boundedBy: 'ends what there is',
  tool: {
    name: 'revoke_my_token',
    title: 'Revoke one of my access tokens',
    description:
      'Revokes a personal access token of the caller for good, with those created by it. Without tokenId it revokes the calling token.',
  },
  params,
  query,
  body,
  response,
  async handle(services, { caller, write, params: { tokenId }, query, body, origin }) {
    const reason = (body?.reason ?? query.reason) || 'Revoked by owner';
    return revoke(services, { caller, write, tokenId, reason, ownerId: caller.userId, origin });
  },
});

/** Rules: PAT-14 to PAT-16, PAT-24. */
export const revokeAnyToken = endpoint({
  method: 'DELETE',
  path: '/personal-access-tokens/admin/:tokenId',
  tag: 'Personal access tokens',
  summary: "Revoke any user's token",
  policy: { who: 'admin', scope: 'token:admin', adminFirst: true },
  costs: 'nothing',
  boundedBy: 'ends what there is',
  tool: { name: 'revoke_any_token', title: "Revoke any user's access token" },
  params,
  query,
  body,
  response,
  async handle(services, { caller, write, params: { tokenId }, query, body, origin }) {
    const reason = (body?.reason ?? query.reason) || 'Revoked by administrator';
    return revoke(services, { caller, write, tokenId, reason, ownerId: null, origin });
  },
});
