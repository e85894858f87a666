import type { z } from 'zod';
import type { Policy } from '../../access/policy.ts';
import { release } from '../../base/release.gen.ts';
import { type AnyEndpoint, addressOf } from '../endpoint.ts';
import { isUpload, responseForms, uploadFields } from '../media.ts';
import type { Operation } from '../operations.ts';
import { isStrict, jsonSchema } from '../schemas.ts';
import { errorMessageResponse, errorSchema, oauthErrorSchema, rpcErrorSchema } from './openapi-errors.ts';

type Json = Record<string, unknown>;

/** The headings of the documentation, in its order. */
const tags = [
  'Organization',
  'Sign-in',
  'Users',
  'Invitations',
  'User groups',
  'Teams',
  'Pictures',
  'Personal access tokens',
  'Settings',
  'Services',
  'Events',
  'Webhooks',
  'Audit',
  'Agents',
  'Keys',
  'Health',
];

/** The document has them elsewhere: in `security`, or nowhere, as only browsers send them. */
const unlisted = ['authorization', 'cookie'];

function parameters(place: 'path' | 'query' | 'header', schema: z.ZodType | undefined): Json[] {
  if (!schema) return [];
  const { properties = {}, required = [] } = jsonSchema(schema, 'input') as {
    properties?: Record<string, Json>;
    required?: string[];
  };
  const listed = Object.entries(properties).filter(([name]) => place !== 'header' || !unlisted.includes(name));
  return listed.map(([name, { description, ...of }]) => ({
    name,
    in: place,
    ...(description === undefined ? {} : { description }),
    required: required.includes(name),
    schema: of,
  }));
}

const users = {
  member: 'Any member',
  admin: 'Administrators',
  adminOrSelf: 'Administrators, and the user in question',
} as const;

/** Returns the description of the policy for the document. */
function access({ policy, isOAuth }: { readonly policy: Policy; readonly isOAuth?: true }): Json {
  if (isOAuth)
    return { security: [{ client: [] }, {}], description: 'Service clients, named by HTTP Basic or in the body.' };
  if (policy.who === 'anyone') return { security: [], description: 'Open: no credential is needed.' };
  if (policy.who === 'holder') return { description: 'Takes the credential that it consumes as the bearer token.' };
  if (policy.who === 'service') {
    return {
      security: [{ service: [] }],
      description: `Services, by a scoped token with \`${policy.scope}\`.`,
      'x-required-scope': policy.scope,
    };
  }
  const who = users[policy.who];
  if ('orService' in policy && policy.orService !== undefined) {
    return {
      security: [{ bearer: [] }, { service: [] }],
      description: `${who}; a personal access token needs the scope \`${policy.scope}\`. Services, by a scoped token with \`${policy.orService}\`.`,
      'x-required-scope': policy.scope,
    };
  }
  if ('anyScope' in policy) return { description: `${who}; a personal access token of any scope.` };
  if ('sessionOnly' in policy) return { description: `${who}, signed in; not with a personal access token.` };
  return {
    description: `${who}; a personal access token needs the scope \`${policy.scope}\`.`,
    'x-required-scope': policy.scope,
  };
}

function responseHeaders({ responseHeaders: declared }: AnyEndpoint): Json {
  if (!declared) return {};
  const headers = Object.entries(declared).map(([name, description]) => [
    name,
    { description, schema: { type: 'string' } },
  ]);
  return { headers: Object.fromEntries(headers) };
}

function bodyContent(body: z.ZodType, isOAuth = false): Json {
  if (!isUpload(body)) {
    const content = { schema: jsonSchema(body, 'input') };
    return { 'application/json': content, ...(isOAuth ? { 'application/x-www-form-urlencoded': content } : {}) };
  }
  const file = { type: 'string', format: 'binary', description: 'At most 1 MB' };
  const fields = uploadFields(body);
  const others = Object.entries<z.ZodType>(fields?.shape ?? {}).map(([name, of]): [string, unknown] => [
    name,
    jsonSchema(of, 'input'),
  ]);
  const schema = { type: 'object', required: ['file'], properties: { file, ...Object.fromEntries(others) } };
  return { 'multipart/form-data': { schema } };
}

const clientName = {
  name: 'client-name',
  in: 'header',
  description:
    'Passed to the connector backend, where there is one; a value that does not match the pattern is ignored',
  required: false,
  schema: { type: 'string', pattern: '^[A-Za-z0-9._-]{1,64}$', default: 'latchkey' },
};

/** Schema for responses of a backend: only their form can be promised. */
const passedResponse = {
  description: 'Done: the response of the connector backend, where there is one; the body is its own, or empty',
  content: { 'application/json': { schema: {} } },
};

const otherwise: Readonly<Record<string, string>> = { '204': 'There is none', '302': 'To be gone to' };

function mediaSchema(mediaType: string): Json {
  return { type: 'string', ...(mediaType.startsWith('image/') ? { format: 'binary' } : {}) };
}

function responses(endpoint: AnyEndpoint): Json {
  const all = Object.entries(endpoint.response).map(([status, schema]) => {
    const { mediaTypes, json } = responseForms(schema);
    const content = {
      ...(json ? { 'application/json': { schema: jsonSchema(json, 'output') } } : {}),
      ...Object.fromEntries(mediaTypes.map((mediaType) => [mediaType, { schema: mediaSchema(mediaType) }])),
    };
    const done = endpoint.forwardsCredential
      ? 'Done; with a connector backend the body is that of its response'
      : 'Done';
    const description = otherwise[status] ?? done;
    const isEmpty = Object.keys(content).length === 0;
    return [status, { description, ...responseHeaders(endpoint), ...(isEmpty ? {} : { content }) }] as const;
  });
  return { ...Object.fromEntries<unknown>(all), ...(endpoint.forwardsCredential ? { '2XX': passedResponse } : {}) };
}

function errorOf({ isOAuth, isMcp }: AnyEndpoint): string {
  if (isMcp) return 'RpcError';
  return isOAuth ? 'OAuthError' : 'ApiError';
}

function refusedAs(name: string): Json {
  const schema = { $ref: `#/components/schemas/${name}` };
  return { description: 'Refused, or failed', content: { 'application/json': { schema } } };
}

/**
 * Returns the description of an operation: the policy and, for a list, the treatment of unknown parameters, which JSON
 * Schema can express for bodies only.
 */
function described(endpoint: AnyEndpoint): Json {
  const made = access(endpoint);
  if (!isStrict(endpoint.query)) return made;
  return { ...made, description: `${String(made['description'])} Unknown parameters are rejected, but for \`_\`.` };
}

function operation(endpoint: Operation): Json {
  const given = [
    ...parameters('path', endpoint.params),
    ...parameters('query', endpoint.query),
    ...parameters('header', endpoint.headers),
    ...(endpoint.forwardsCredential ? [clientName] : []),
  ];
  return {
    operationId: endpoint.operationId,
    tags: [endpoint.tag],
    summary: endpoint.summary,
    ...described(endpoint),
    ...(endpoint.forwardsCredential ? { 'x-passed-answers': true } : {}),
    ...(given.length > 0 ? { parameters: given } : {}),
    ...(endpoint.body
      ? {
          requestBody: {
            required: !endpoint.body.safeParse(undefined).success,
            content: bodyContent(endpoint.body, endpoint.isOAuth),
          },
        }
      : {}),
    responses: {
      ...responses(endpoint),
      ...Object.fromEntries((endpoint.errorMessages ?? []).map((status) => [status, errorMessageResponse])),
      default: { $ref: `#/components/responses/${errorOf(endpoint)}` },
    },
  };
}

/** The OpenAPI 3.1 document of these endpoints. Rule: RUN-8. */
export function openApiDocument(endpoints: readonly Operation[]): Json {
  const paths: Record<string, Json> = {};
  for (const endpoint of endpoints) {
    const address = addressOf(endpoint).replace(/:(\w+)/g, '{$1}');
    paths[address] = { ...paths[address], [endpoint.method.toLowerCase()]: operation(endpoint) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Latchkey',
      version: release,
      description:
        'Identity, organization and access-token service. Send a session or a personal access token as bearer.',
    },
    servers: [{ url: '/' }],
    security: [{ bearer: [] }],
    tags: tags.map((name) => ({ name })),
    paths,
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
        client: { type: 'http', scheme: 'basic', description: 'The clientId and clientSecret of a service client' },
        service: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: 'A scoped token of a service' },
      },
      schemas: { ApiError: errorSchema, OAuthError: oauthErrorSchema, RpcError: rpcErrorSchema },
      responses: {
        OAuthError: refusedAs('OAuthError'),
        ApiError: refusedAs('ApiError'),
        RpcError: refusedAs('RpcError'),
      },
    },
  };
}
