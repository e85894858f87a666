import { z } from 'zod';
import { endpoint, endpoints } from '../../http/endpoint.ts';

/** With the path of the resource, and without: some clients ask for one, some for the other. */
const ends = [
  { end: '', operationId: 'getProtectedResource' },
  { end: '/mcp', operationId: 'getProtectedResourceOfMcp' },
] as const;

/** Metadata of the MCP endpoint, for clients that got 401 (RFC 9728). Rule: MCP-3. */
export const getProtectedResource = endpoints(ends, ({ end, operationId }) =>
  endpoint({
    method: 'GET',
    path: `/.well-known/oauth-protected-resource${end}`,
    operationId,
    root: true,
    tag: 'Agents',
    summary: 'The credential that the MCP endpoint takes: a personal access token, created by its owner (RFC 9728)',
    policy: { who: 'anyone' },
    response: {
      200: z.object({
        resource: z.string(),
        resource_name: z.string(),
        resource_documentation: z.string(),
        bearer_methods_supported: z.array(z.string()),
        scopes_supported: z.array(z.string()),
      }),
    },
    async handle({ config: { baseUrl, scopes } }) {
      return {
        resource: `${baseUrl}/mcp`,
        resource_name: 'Latchkey',
        resource_documentation: `${baseUrl}/docs`,
        bearer_methods_supported: ['header'],
        scopes_supported: scopes.infos.map(({ name }) => name),
      };
    },
  }),
);
