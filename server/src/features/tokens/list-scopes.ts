import { z } from 'zod';
import type { ScopeInfo } from '../../access/scopes.ts';
import { endpoint } from '../../http/endpoint.ts';
import { components, listQuery } from '../../http/schemas.ts';

const scope = z.object({
  name: z.string(),
  description: z.string(),
  category: z.string(),
  requiresUserConsent: z.boolean(),
});
components.add(scope, { id: 'Scope' });

/** Rules: PAT-17, SCOPE-4 to SCOPE-8. */
export const listScopes = endpoint({
  method: 'GET',
  path: '/personal-access-tokens/scopes',
  tag: 'Personal access tokens',
  summary: 'List the scopes that a token can be given here',
  policy: { who: 'member', scope: 'token:read' },
  tool: { name: 'list_scopes', title: 'List the scopes there are' },
  query: listQuery({}),
  response: { 200: z.object({ scopes: z.array(scope), categories: z.record(z.string(), z.array(scope)) }) },
  async handle({ config }) {
    const categories = new Map<string, ScopeInfo[]>();
    for (const info of config.scopes.infos)
      categories.set(info.category, [...(categories.get(info.category) ?? []), info]);
    return { scopes: [...config.scopes.infos], categories: Object.fromEntries(categories) };
  },
});
