import { readFileSync } from 'node:fs';
import type { Json } from '../harness/api-client.ts';
import type { Wanted } from './timed-request.ts';

const document = new URL('../docs/openapi.gen.json', import.meta.url);
const base = '/api/v1';

/** What there is in a store that lists are asked for. */
export interface ListPlace {
  /** How many rows a page may have. */
  readonly rows: number;
  readonly userIds: readonly string[];
  /** A group and a team of these users. */
  readonly groupId: string;
  readonly teamId: string;
  /** One that was sent to. */
  readonly webhookId: string;
}

/** A route that answers rows of the store. */
export interface ListRoute {
  readonly route: string;
  /** What distinguishes it from another of the same route. */
  readonly with?: string;
  /** It takes a session instead of a token. */
  readonly bySession?: boolean;
  request(place: ListPlace): Wanted;
  /** The rows in the answer. */
  list(body: Json): readonly unknown[];
}

/** Every route that answers rows of the store, as many as there are. */
export const listRoutes: readonly ListRoute[] = [
  { route: 'GET /users', request: () => ({ path: '/users' }), list: (body) => body },
  {
    route: 'GET /users',
    with: '?page=1&search=a',
    request: ({ rows }) => ({ path: `/users?page=1&search=a&limit=${rows}` }),
    list: (body) => body.users,
  },
  {
    route: 'GET /users/fetch/with-groups',
    request: () => ({ path: '/users/fetch/with-groups' }),
    list: (body) => body,
  },
  {
    route: 'POST /users/by-ids',
    request: ({ rows, userIds }) => ({
      method: 'POST',
      path: '/users/by-ids',
      json: { userIds: userIds.slice(0, rows) },
    }),
    list: (body) => body,
  },
  {
    route: 'GET /personal-access-tokens',
    request: () => ({ path: '/personal-access-tokens' }),
    list: (body) => body.tokens,
  },
  {
    route: 'GET /personal-access-tokens/admin',
    request: ({ rows }) => ({ path: `/personal-access-tokens/admin?limit=${rows}` }),
    list: (body) => body.data,
  },
  {
    route: 'GET /userGroups',
    request: ({ rows }) => ({ path: `/userGroups?limit=${rows}` }),
    list: (body) => body.groups,
  },
  { route: 'GET /userGroups/stats/list', request: () => ({ path: '/userGroups/stats/list' }), list: (body) => body },
  {
    route: 'GET /userGroups/users/{userId}',
    request: ({ userIds }) => ({ path: `/userGroups/users/${userIds[0]}` }),
    list: (body) => body,
  },
  {
    route: 'GET /userGroups/{groupId}',
    request: ({ groupId }) => ({ path: `/userGroups/${groupId}` }),
    list: (body) => body.users,
  },
  {
    route: 'GET /userGroups/{groupId}/users',
    request: ({ rows, groupId }) => ({ path: `/userGroups/${groupId}/users?limit=${rows}` }),
    list: (body) => body.users,
  },
  {
    route: 'GET /users/invitations',
    request: ({ rows }) => ({ path: `/users/invitations?limit=${rows}` }),
    list: (body) => body.invitations,
  },
  {
    route: 'GET /users/graph/list',
    request: ({ rows }) => ({ path: `/users/graph/list?limit=${rows}` }),
    list: (body) => body.users,
  },
  {
    route: 'GET /users/teams/list',
    request: ({ rows }) => ({ path: `/users/teams/list?limit=${rows}` }),
    list: (body) => body.teams,
  },
  {
    route: 'GET /teams/user/teams',
    request: ({ rows }) => ({ path: `/teams/user/teams?limit=${rows}` }),
    list: (body) => body.teams,
  },
  {
    route: 'GET /teams/{id}',
    request: ({ teamId }) => ({ path: `/teams/${teamId}` }),
    list: (body) => body.team.members,
  },
  {
    route: 'GET /teams/{id}/users',
    request: ({ rows, teamId }) => ({ path: `/teams/${teamId}/users?limit=${rows}` }),
    list: (body) => body.members,
  },
  { route: 'GET /service-clients', request: () => ({ path: '/service-clients' }), list: (body) => body.clients },
  {
    route: 'GET /webhooks/{webhookId}/attempts',
    request: ({ rows, webhookId }) => ({ path: `/webhooks/${webhookId}/attempts?limit=${rows}` }),
    list: (body) => body.attempts,
  },
  {
    route: 'GET /events',
    request: ({ rows }) => ({ path: `/events?limit=${rows}` }),
    list: (body) => body.events,
  },
  {
    route: 'GET /audit',
    request: ({ rows }) => ({ path: `/audit?limit=${rows}` }),
    list: (body) => body.records,
  },
  {
    route: 'GET /userAccount/sessions',
    bySession: true,
    request: () => ({ path: '/userAccount/sessions' }),
    list: (body) => body.sessions,
  },
  {
    route: 'GET /users/{id}/sessions',
    request: ({ userIds }) => ({ path: `/users/${userIds[0]}/sessions` }),
    list: (body) => body.sessions,
  },
];

/** Routes that answer a list which does not grow with the store. */
const boundedRoutes = [
  'GET /.well-known/jwks.json',
  // Scopes and tools, which the code has.
  'GET /.well-known/oauth-protected-resource',
  'GET /.well-known/oauth-protected-resource/mcp',
  'GET /access',
  'GET /personal-access-tokens/scopes',
  'POST /userAccount/initAuth',
  'POST /userAccount/authenticate',
  // At most three steps of sign-in.
  'GET /orgAuthConfig/authMethods',
  'POST /orgAuthConfig/updateAuthMethod',
  // At most 50 webhooks; the types of event that one of them asks for.
  'GET /webhooks',
  'POST /webhooks',
  'GET /webhooks/{webhookId}',
  'PATCH /webhooks/{webhookId}',
  // Two ways out to a broker, one to each webhook.
  'GET /events/relays',
  // Nothing but a broker that refuses makes rows of it: it is counted in server/test/http/list-statements.test.ts.
  'GET /events/dead-letters',
  // One setting, one service client.
  'GET /settings/oidc',
  'PUT /settings/oidc',
  // Who has one address.
  'GET /users/email/exists',
  // What a change answers of the one group that it changed.
  'PUT /userGroups/{groupId}',
  'DELETE /userGroups/{groupId}',
];

/** A part of the OpenAPI document. */
type Schema = Json;

function answersList(schema: Schema, resolve: (schema: Schema) => Schema): boolean {
  const { type, properties = {}, anyOf = [], oneOf = [] } = resolve(schema);
  if (type === 'array') return true;
  if ([...anyOf, ...oneOf].some((option) => answersList(option, resolve))) return true;
  return Object.values(properties).some((property: Schema) => resolve(property).type === 'array');
}

/** The routes that answer a list, as the OpenAPI document of this checkout has them. */
function documentedLists(): readonly string[] {
  const openapi = JSON.parse(readFileSync(document, 'utf8'));
  const resolve = (schema: Schema): Schema =>
    schema.$ref === undefined
      ? schema
      : resolve(
          schema.$ref
            .split('/')
            .slice(1)
            .reduce((part: Json, name: string) => part[name], openapi),
        );
  const operations = Object.entries<Json>(openapi.paths).flatMap(([path, methods]) =>
    Object.entries<Json>(methods).map(([method, { responses }]) => ({ path, method, responses })),
  );
  return operations.flatMap(({ path, method, responses }) => {
    const schema = responses?.['200']?.content?.['application/json']?.schema;
    if (schema === undefined || !answersList(schema, resolve)) return [];
    return [`${method.toUpperCase()} ${path.startsWith(base) ? path.slice(base.length) : path}`];
  });
}

/** Throws when a documented route answers a list and is not known here: "any list route" would leave it out unnoticed. */
export function requireEveryList(): void {
  const known = new Set([...boundedRoutes, ...listRoutes.map(({ route }) => route)]);
  const unknown = documentedLists().filter((route) => !known.has(route));
  if (unknown.length > 0) {
    throw new Error(`${unknown.join(', ')}: answers a list, and bench/list-routes.ts does not know it`);
  }
}
