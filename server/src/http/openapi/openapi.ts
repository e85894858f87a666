import type { z } from 'zod';
import { release } from '../../base/release.gen.ts';
import { type AnyEndpoint, addressOf } from '../endpoint.ts';
import { isUpload, responseForms, uploadFields } from '../media.ts';
import type { Operation } from '../operations.ts';
import { isStrict, jsonSchema } from '../schemas.ts';
import { access } from './openapi-access.ts';
import { errorMessageResponse, errorSchema, oauthErrorSchema, rpcErrorSchema } from './openapi-errors.ts';
import { type ErrorForm, headerComponents, RefusalResponses } from './openapi-refusals.ts';
import { ResponseSchemas } from './openapi-schemas.ts';
import { webhooks } from './openapi-webhooks.ts';

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

const replayedText = 'true, where the response is repeated for an Idempotency-Key';
const locationText = 'Address of the new resource';

function responseHeaders({ responseHeaders: declared, location, idempotency }: AnyEndpoint): Json {
  const all = {
    ...declared,
    ...(location ? { Location: locationText } : {}),
    ...(idempotency ? { 'Idempotency-Replayed': replayedText } : {}),
  };
  if (Object.keys(all).length === 0) return {};
  const headers = Object.entries(all).map(([name, description]) => [name, { description, schema: { type: 'string' } }]);
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

const idempotencyKey = {
  name: 'Idempotency-Key',
  in: 'header',
  description:
    'Names this attempt: for 24 hours, the same request with the same key gets the first response, without secrets, and another request 422',
  required: false,
  schema: { type: 'string', pattern: '^[!-~]{1,255}$' },
};

const otherwise: Readonly<Record<string, string>> = {
  '202': 'Taken; there is nothing to answer',
  '204': 'There is none',
  '302': 'To be gone to',
};

function mediaSchema(mediaType: string): Json {
  return { type: 'string', ...(mediaType.startsWith('image/') ? { format: 'binary' } : {}) };
}

function responses(endpoint: AnyEndpoint, schemas: ResponseSchemas): Json {
  const all = Object.entries(endpoint.response).map(([status, schema]) => {
    const { mediaTypes, json } = responseForms(schema);
    const content = {
      ...(json ? { 'application/json': { schema: schemas.of(json) } } : {}),
      ...Object.fromEntries(mediaTypes.map((mediaType) => [mediaType, { schema: mediaSchema(mediaType) }])),
    };
    const done = endpoint.forwardsCredential
      ? 'Done; with a connector backend the body is that of its response'
      : 'Done';
    const description = otherwise[status] ?? done;
    const isEmpty = Object.keys(content).length === 0;
    return [status, { description, ...responseHeaders(endpoint), ...(isEmpty ? {} : { content }) }] as const;
  });
  return Object.fromEntries<unknown>(all);
}

function errorOf({ isOAuth, isMcp }: AnyEndpoint): ErrorForm {
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

/** What operations refer to in the components. */
interface Collected {
  readonly schemas: ResponseSchemas;
  readonly refusals: RefusalResponses;
}

function operation(endpoint: Operation, { schemas, refusals }: Collected): Json {
  const given = [
    ...parameters('path', endpoint.params),
    ...parameters('query', endpoint.query),
    ...parameters('header', endpoint.headers),
    ...(endpoint.forwardsCredential ? [clientName] : []),
    ...(endpoint.idempotency ? [idempotencyKey] : []),
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
      ...responses(endpoint, schemas),
      ...refusals.of(endpoint, errorOf(endpoint)),
      ...Object.fromEntries((endpoint.errorMessages ?? []).map((status) => [status, errorMessageResponse])),
      default: { $ref: `#/components/responses/${errorOf(endpoint)}` },
    },
  };
}

/** The OpenAPI 3.1 document of these endpoints. Rule: RUN-8. */
export function openApiDocument(endpoints: readonly Operation[]): Json {
  const paths: Record<string, Json> = {};
  const schemas = new ResponseSchemas();
  const refusals = new RefusalResponses();
  for (const endpoint of endpoints) {
    const address = addressOf(endpoint).replace(/:(\w+)/g, '{$1}');
    paths[address] = { ...paths[address], [endpoint.method.toLowerCase()]: operation(endpoint, { schemas, refusals }) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Latchkey',
      version: release,
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
      description:
        'Identity, organization and access-token service. Send a session or a personal access token as bearer.',
    },
    servers: [{ url: '/' }],
    security: [{ bearer: [] }],
    tags: tags.map((name) => ({ name })),
    paths,
    webhooks: webhooks((schema) => schemas.of(schema)),
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
        client: { type: 'http', scheme: 'basic', description: 'The clientId and clientSecret of a service client' },
        service: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: 'A scoped token of a service' },
      },
      headers: headerComponents,
      schemas: { ApiError: errorSchema, OAuthError: oauthErrorSchema, RpcError: rpcErrorSchema, ...schemas.named() },
      responses: {
        OAuthError: refusedAs('OAuthError'),
        ApiError: refusedAs('ApiError'),
        RpcError: refusedAs('RpcError'),
        ...refusals.named(),
      },
    },
  };
}
