import { z } from 'zod';
import { addressOf, endpoint } from '../../http/endpoint.ts';
import { listQuery } from '../../http/schemas.ts';
import { objectionTo } from '../../mcp/tool.ts';

/** Rule: MCP-12. */
export const explainAccess = endpoint({
  method: 'GET',
  path: '/access',
  tag: 'Agents',
  summary: 'The requirements of each operation, and what the presented credential lacks for it',
  policy: { who: 'member', anyScope: true },
  tool: {
    name: 'explain_access',
    title: 'What may I do',
    description:
      'Lists for each tool and each address of the API the scope and the rights that it needs, and what your credential lacks. ' +
      'Ask for one with operation, for example list_users or GET /users.',
  },
  query: listQuery({
    operation: z
      .string()
      .max(200)
      .optional()
      .describe(
        'Only this one: the name of a tool, an operationId such as listUsers, or a method and an address such as GET /users',
      ),
    tools: z.enum(['true', 'false']).optional().describe('Only operations that are tools, or only those that are not'),
  }),
  response: {
    200: z.object({
      operations: z.array(
        z.object({
          operation: z.string().describe('Method and address'),
          operationId: z.string().describe('Its name in the OpenAPI document, and in snake case that of its tool'),
          tool: z.string().nullable(),
          who: z.enum(['member', 'admin', 'adminOrSelf']),
          scope: z
            .string()
            .nullable()
            .describe('The scope that a personal access token needs; null: none, or a session is needed'),
          allowed: z.boolean().describe('Whether the credential suffices, for some input at least'),
          lacks: z
            .enum(['administrator', 'session', 'scope'])
            .nullable()
            .describe('The objection: not an administrator, not a session, or the scope is missing'),
        }),
      ),
    }),
  },
  async handle({ mcp }, { caller, query: { operation, tools } }) {
    const all = mcp.endpoints.flatMap((one) => {
      const { policy, method, tool } = one;
      if (policy.who === 'anyone' || policy.who === 'holder' || policy.who === 'service') return [];
      const lacks = objectionTo(policy, caller);
      return {
        operation: `${method} ${addressOf(one).replace('/api/v1', '')}`,
        operationId: one.operationId,
        tool: tool?.name ?? null,
        who: policy.who,
        scope: 'scope' in policy ? policy.scope : null,
        allowed: lacks === null,
        lacks,
      };
    });
    const isWanted = (one: (typeof all)[number]) =>
      (operation === undefined || [one.tool, one.operationId, one.operation].includes(operation)) &&
      (tools === undefined || (one.tool !== null) === (tools === 'true'));
    return { operations: all.filter(isWanted) };
  },
});
