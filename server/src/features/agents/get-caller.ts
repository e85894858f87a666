import { z } from 'zod';
import { toTimestamp } from '../../base/clock.ts';
import { endpoint } from '../../http/endpoint.ts';
import { idResponse } from '../../http/schemas.ts';

/** Rule: MCP-6. */
export const getCaller = endpoint({
  method: 'GET',
  path: '/whoami',
  tag: 'Agents',
  summary: 'The owner of the credential, and its scopes',
  policy: { who: 'member', anyScope: true },
  tool: { name: 'whoami', title: 'Who am I' },
  response: {
    200: z.object({
      userId: idResponse,
      orgId: idResponse,
      isAdmin: z.boolean(),
      credential: z.object({
        kind: z.enum(['session', 'token']),
        tokenId: idResponse.nullable().describe('Of a personal access token'),
        scopes: z
          .array(z.string())
          .nullable()
          .describe('The scopes of the token; null for a session, which may do anything'),
        expiresAt: z.string().nullable().describe('null: of a session, or never'),
      }),
    }),
  },
  async handle(_services, { caller }) {
    const { userId, orgId, isAdmin } = caller;
    const token = caller.kind === 'token' ? caller : null;
    const expiresAtMs = token?.expiresAtMs ?? null;
    return {
      userId,
      orgId,
      isAdmin,
      credential: {
        kind: caller.kind,
        tokenId: token?.tokenId ?? null,
        scopes: token && [...token.scopes],
        expiresAt: expiresAtMs === null ? null : toTimestamp(expiresAtMs),
      },
    };
  },
});
