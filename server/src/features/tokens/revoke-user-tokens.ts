import { z } from 'zod';
import { ApiError } from '../../base/errors.ts';
import { selectUserById } from '../../db/members/users.ts';
import { endpoint } from '../../http/endpoint.ts';
import { id } from '../../http/schemas.ts';
import { revokeReason, revokeTokensOf } from './public.ts';

const reason = revokeReason
  .optional()
  .describe('Why, for the audit log and the list of administrators; the body counts before the query')
  .meta({ examples: ['Laptop lost'] });

/** Rule: SESSION-9. */
export const revokeUserTokens = endpoint({
  method: 'DELETE',
  path: '/users/:id/personal-access-tokens',
  tag: 'Users',
  summary: 'Revoke all personal access tokens of a user, with all that they created',
  policy: { who: 'admin', scope: 'org:admin' },
  tool: { name: 'revoke_user_tokens', title: 'Revoke all access tokens of a user' },
  params: z.object({ id: id.describe('Of the user') }),
  query: z.strictObject({ reason }),
  body: z.strictObject({ reason }).optional(),
  response: { 200: z.object({ revoked: z.int().describe('How many tokens this revoked') }) },
  async handle(services, { caller, write, params: { id: userId }, query, body, origin }) {
    const { orgId } = caller;
    const why = (body?.reason ?? query.reason) || 'Revoked by administrator';
    const revoked = await write(async (tx) => {
      const user = await selectUserById(tx, userId);
      if (user?.orgId !== orgId) throw new ApiError('notFound');
      return revokeTokensOf(tx, services, { owner: { userId }, orgId, by: caller, reason: why, origin });
    });
    return { revoked };
  },
});
