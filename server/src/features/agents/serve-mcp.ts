import { z } from 'zod';
import { ApiError } from '../../base/errors.ts';
import { endpoint, endpoints } from '../../http/endpoint.ts';

/** The second address is for clients that keep everything below one prefix. Rule: MCP-1. */
const prefixes = [
  { prefix: '', operationId: 'serveMcp' },
  { prefix: 'api/v1/', operationId: 'serveMcpBelowApi' },
] as const;

/** Rules: MCP-1 to MCP-11. */
export const serveMcp = endpoints(prefixes, ({ prefix, operationId }) =>
  endpoint({
    method: 'POST',
    path: `/${prefix}mcp`,
    operationId,
    root: true,
    tag: 'Agents',
    summary: 'The Model Context Protocol, for agents',
    policy: { who: 'member', anyScope: true },
    isMcp: true,
    headers: z.object({
      accept: z.string().optional(),
      authorization: z.string().optional(),
      'content-type': z.string().optional(),
      'mcp-method': z.string().optional(),
      'mcp-name': z.string().optional(),
      'mcp-protocol-version': z.string().optional(),
      'mcp-session-id': z.string().optional(),
      origin: z.string().optional(),
    }),
    body: z.unknown().meta({
      description: 'A message of JSON-RPC 2.0',
      examples: [{ jsonrpc: '2.0', id: 1, method: 'tools/list' }],
    }),
    response: { 200: z.unknown().meta({ description: 'A message of JSON-RPC 2.0' }), 202: z.undefined() },
    async handle({ mcp, config }, { caller, reauthorize, headers, body, origin }) {
      const { origin: page, authorization } = headers;
      const isKnown = () => [new URL(config.baseUrl).origin, ...config.corsOrigins].includes(page ?? '');
      if (page !== undefined && !isKnown()) throw new ApiError('originForeign');
      return mcp.respond({ call: { caller, reauthorize, origin, authorization }, headers, message: body });
    },
  }),
);
