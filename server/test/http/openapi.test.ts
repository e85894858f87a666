import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type AnyEndpoint, addressOf } from '../../src/http/endpoint.ts';
import { isUpload, uploadFields } from '../../src/http/media.ts';
import { openApiDocument } from '../../src/http/openapi/openapi.ts';
import { routes } from '../../src/routes.gen.ts';
import { checkAgainstContract } from '../support/contract-check.ts';
import type { Json } from '../support/test-app.ts';

const file = '../../../docs/openapi.gen.json';
const document: Json = JSON.parse(JSON.stringify(openApiDocument(routes)));

/** Media types of streamed responses, by address. */
const streamedTypes: Readonly<Record<string, readonly string[]>> = {
  '/events': ['text/event-stream'],
  '/audit/export': ['application/jsonl', 'text/csv'],
  // RFC 9116.
  '/.well-known/security.txt': ['text/plain; charset=utf-8'],
};

function operationOf(endpoint: AnyEndpoint): Json {
  const address = addressOf(endpoint).replace(/:(\w+)/g, '{$1}');
  return document.paths[address]?.[endpoint.method.toLowerCase()];
}

/** Returns the responses that are no errors. */
function successesOf(endpoint: AnyEndpoint): Json {
  const all = Object.entries<Json>(operationOf(endpoint).responses);
  return Object.fromEntries(all.filter(([status]) => /^[23]\d\d$/.test(status)));
}

/** Returns the example that the viewer suggests. */
function exampleOf(schema: Json): unknown {
  if (schema.examples) return schema.examples[0];
  if (schema.anyOf) return exampleOf(schema.anyOf[0]);
  if (schema.type !== 'object') throw new Error(`nothing to suggest for ${JSON.stringify(schema)}`);
  return Object.fromEntries(Object.entries(schema.properties).map(([name, of]) => [name, exampleOf(of)]));
}

describe('OpenAPI document', () => {
  it('is the reviewed one (RUN-8); after an intended change run vitest with -u', async () => {
    await expect(`${JSON.stringify(document, null, 2)}\n`, 'stale: npm run gen writes it').toMatchFileSnapshot(file);
  });

  it('is what every answer in these tests is checked against: one that breaks it is told (RUN-9)', () => {
    const exists = (body: unknown, status = 200) => checkAgainstContract('GET', '/api/v1/org/exists', { status, body });
    expect(() => exists({ exists: true })).not.toThrow();
    expect(() => exists({ exists: 'yes' })).toThrow(/against its contract/);
    expect(() => exists({ exists: true, secret: 'x' })).toThrow(/against its contract/);
    expect(() => exists({ message: 'no' }, 404)).toThrow(/against its contract/);
  });

  it('has every endpoint, each with a tag, a summary and an id of its own (RUN-8)', () => {
    const reviewed: Json = JSON.parse(readFileSync(new URL(file, import.meta.url), 'utf8'));
    const headings = reviewed.tags.map(({ name }: { name: string }) => name);
    const ids = new Set<string>();
    for (const endpoint of routes) {
      const address = addressOf(endpoint).replace(/:(\w+)/g, '{$1}');
      const operation = reviewed.paths[address]?.[endpoint.method.toLowerCase()];
      expect(operation, `${endpoint.method} ${address}`).toBeDefined();
      expect(operation.summary.length).toBeGreaterThan(3);
      expect(operation.tags).toHaveLength(1);
      expect(headings).toContain(operation.tags[0]);
      ids.add(operation.operationId);
    }
    expect(ids.size).toBe(routes.length);
  });

  const taking = routes
    .filter(({ body }) => body && !isUpload(body))
    .map((one) => [`${one.method} ${one.path}`, one] as const);

  it.each(taking)('%s: the body that is suggested is taken as it is', (_, endpoint) => {
    const { schema } = operationOf(endpoint).requestBody.content['application/json'];
    expect(endpoint.body?.safeParse(exampleOf(schema)).error).toBeUndefined();
  });

  it('requires what signing in cannot do without, though its absence is 401 (AUTH-6)', () => {
    const { parameters, requestBody } = document.paths['/api/v1/userAccount/authenticate'].post;
    expect(parameters).toMatchObject([{ name: 'x-session-token', in: 'header', required: true }]);
    const { credentials } = requestBody.content['application/json'].schema.properties;
    expect(Object.keys(credentials.properties)).toEqual(['password', 'otp', 'oidc']);
    // Which of them, the method says.
    expect(credentials.required).toBeUndefined();
  });

  it('says how long text may be, as the rules count it (USER-11, USER-13, PAT-4)', () => {
    const { schema } = document.paths['/api/v1/personal-access-tokens'].post.requestBody.content['application/json'];
    expect(schema.properties.name).toMatchObject({ minLength: 1, maxLength: 100 });
    const { properties } = document.paths['/api/v1/users'].post.requestBody.content['application/json'].schema;
    expect(properties.fullName).toMatchObject({ minLength: 1, maxLength: 255 });
    expect(properties.email).toMatchObject({ format: 'email', maxLength: 254 });
  });

  const binary = { type: 'string', format: 'binary' };
  it.each(
    routes
      .filter(({ body }) => isUpload(body) && !uploadFields(body))
      .map((one) => [`${one.method} ${one.path}`, one] as const),
  )('%s: takes one file in a form, and nothing else (PICTURE-8)', (_, endpoint) => {
    const { requestBody, responses } = operationOf(endpoint);
    expect(requestBody.required).toBe(true);
    expect(Object.keys(requestBody.content)).toEqual(['multipart/form-data']);
    const { schema } = requestBody.content['multipart/form-data'];
    expect(schema).toMatchObject({ type: 'object', required: ['file'], properties: { file: binary } });
    expect(Object.keys(schema.properties)).toEqual(['file']);
    // JSON is for refusals.
    expect(responses['201'].content).toEqual({ 'image/jpeg': { schema: binary } });
    expect(Object.keys(successesOf(endpoint))).toEqual(['201']);
  });

  it('a form with more than a file says what else there may be (FIT-78)', () => {
    const { requestBody, responses } = document.paths['/api/v1/users/bulk/invite/upload'].post;
    const { schema } = requestBody.content['multipart/form-data'];
    expect(schema).toMatchObject({ type: 'object', required: ['file'], properties: { file: binary } });
    expect(Object.keys(schema.properties)).toEqual(['file', 'groupIds', 'role']);
    expect(Object.keys(responses)).toEqual([
      '200',
      '400',
      '401',
      '403',
      '409',
      '410',
      '413',
      '415',
      '429',
      '502',
      'default',
    ]);
  });

  it('a picture is told by its type, beside the words for there being none (PICTURE-2, PICTURE-3, PICTURE-6)', () => {
    const logo = document.paths['/api/v1/org/logo'].get.responses;
    expect(logo['200'].content).toEqual({ 'image/jpeg': { schema: binary } });
    expect(Object.keys(logo)).toEqual(['200', '204', '401', '403', 'default']);
    expect(Object.keys(logo['204'])).toEqual(['description']);
    const own = document.paths['/api/v1/users/dp'].get.responses['200'].content;
    expect(Object.keys(own).sort()).toEqual(['application/json', 'image/jpeg']);
    expect(own['application/json'].schema).toMatchObject({
      required: ['errorMessage'],
      properties: { errorMessage: { type: 'string' } },
    });
  });

  function expectedSecurity({ policy, isOAuth }: AnyEndpoint): Json {
    const { who } = policy;
    // A client may be named in the body, too.
    if (isOAuth) return [{ client: [] }, {}];
    if (who === 'anyone') return [];
    // Users read the events of their own organization, and services all of them.
    if ('orService' in policy) return [{ bearer: [] }, { service: [] }];
    return [{ [who === 'service' ? 'service' : 'bearer']: [] }];
  }

  it('every operation says which kind of credential it takes (SERVICE-1, SERVICE-2, SERVICE-11, HTTP-7, EVENT-15)', () => {
    const { securitySchemes } = document.components;
    const schemes = Object.entries<Json>(securitySchemes).map(([name, { scheme }]) => [name, scheme]);
    expect(Object.fromEntries(schemes)).toEqual({ bearer: 'bearer', client: 'basic', service: 'bearer' });
    expect(document.security).toEqual([{ bearer: [] }]);
    for (const endpoint of routes) {
      const { security = document.security, ...operation } = operationOf(endpoint);
      expect([endpoint.path, security]).toEqual([endpoint.path, expectedSecurity(endpoint)]);
      const scope = 'scope' in endpoint.policy ? endpoint.policy.scope : undefined;
      expect([endpoint.path, operation['x-required-scope']]).toEqual([endpoint.path, scope]);
    }
  });

  it('every parameter of a path is declared, required and of the form of an id (HTTP-19)', () => {
    for (const endpoint of routes) {
      const named = [...endpoint.path.matchAll(/:(\w+)/g)].map(([, name]) => name);
      const { parameters = [] } = operationOf(endpoint);
      const inPath = parameters.filter((one: Json) => one.in === 'path');
      expect([endpoint.path, inPath.map(({ name }: Json) => name)]).toEqual([endpoint.path, named]);
      for (const one of inPath) expect([one.required, one.schema.type]).toEqual([true, 'string']);
    }
  });

  it('addresses are below /api/v1, but for health, what is well known, and agents (HTTP-1)', () => {
    const elsewhere = Object.keys(document.paths).filter((path) => !path.startsWith('/api/v1/'));
    expect(elsewhere.sort()).toEqual([
      '/.well-known/jwks.json',
      '/.well-known/oauth-protected-resource',
      '/.well-known/oauth-protected-resource/mcp',
      '/.well-known/security.txt',
      '/health/live',
      '/health/ready',
      '/mcp',
    ]);
  });

  it('refusals are JSON, in the form of their endpoint (ERR-1, ERR-5)', () => {
    for (const endpoint of routes) {
      const { method, path } = endpoint;
      const rpc = method === 'POST' && path.endsWith('/mcp') ? 'RpcError' : 'ApiError';
      const form = path.startsWith('/oauth2/') ? 'OAuthError' : rpc;
      expect(operationOf(endpoint).responses.default).toEqual({ $ref: `#/components/responses/${form}` });
    }
    for (const { content } of Object.values<Json>(document.components.responses)) {
      expect(Object.keys(content)).toEqual(['application/json']);
    }
  });

  it('answers are JSON, but for pictures, what is streamed and nothing at all (ERR-1)', () => {
    for (const endpoint of routes) {
      const types = Object.values<Json>(successesOf(endpoint)).flatMap(({ content = {} }) => Object.keys(content));
      const streamed = streamedTypes[endpoint.path] ?? [];
      for (const type of types) expect(['application/json', 'image/jpeg', ...streamed]).toContain(type);
      expect([endpoint.path, types]).toEqual([endpoint.path, expect.arrayContaining([...streamed])]);
      expect(types.includes('image/jpeg')).toBe(/\/(logo|dp)$/.test(endpoint.path) && endpoint.method !== 'DELETE');
    }
  });

  it('OAuth endpoints take a form as well as JSON, and refuse in the words of RFC 6749 (ERR-5, SERVICE-11)', () => {
    const forms = 'application/x-www-form-urlencoded';
    const types = routes.map((endpoint) => [endpoint.path, operationOf(endpoint).requestBody?.content ?? {}] as const);
    const taking = types.filter(([, content]) => forms in content);
    expect(taking.map(([path]) => path)).toEqual(['/oauth2/introspect', '/oauth2/revoke', '/oauth2/token']);
    for (const [, content] of taking) {
      expect(Object.keys(content)).toEqual(['application/json', forms]);
      expect(content[forms]).toEqual(content['application/json']);
    }
    expect(document.components.schemas.OAuthError).toEqual({
      type: 'object',
      required: ['error'],
      properties: { error: { type: 'string' }, error_description: { type: 'string' } },
    });
  });

  it('what sends a browser elsewhere has no body, and tells where it leads to (AUTH-56)', () => {
    const leading = routes.filter((endpoint) => '302' in operationOf(endpoint).responses);
    expect(leading.map(({ path }) => path)).toEqual(['/userAccount/oidc/callback', '/userAccount/oidc/start']);
    for (const endpoint of leading) {
      const successes = successesOf(endpoint);
      expect(Object.keys(successes)).toEqual(['302']);
      expect(successes['302'].content).toBeUndefined();
      expect(Object.keys(successes['302'].headers)).toContain('location');
    }
  });

  it('errorMessage is said only where a rule has it, as the one thing in a body (ERR-4, INVITE-13, PICTURE-6)', () => {
    const saying = routes.filter((endpoint) => JSON.stringify(operationOf(endpoint)).includes('errorMessage'));
    expect(saying.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /users/bulk/invite',
      'POST /users/bulk/invite/upload',
      'GET /users/dp',
    ]);
    expect(JSON.stringify(document.components)).not.toContain('errorMessage');
    const { schema } = document.paths['/api/v1/users/bulk/invite'].post.responses['409'].content['application/json'];
    expect(schema).toEqual({
      type: 'object',
      required: ['errorMessage'],
      properties: { errorMessage: { type: 'string' } },
    });
  });

  it('a refusal may name the addresses that mail did not go out to, or the oldest event kept, beside what every refusal has (ERR-2, INVITE-14, EVENT-12)', () => {
    const { schemas } = document.components;
    const { required, properties } = schemas.ApiError;
    expect(required).toEqual(['message', 'error']);
    expect(Object.keys(properties).sort()).toEqual(['error', 'failed', 'message', 'oldest']);
    expect(properties.failed).toMatchObject({ type: 'array', items: { type: 'string', format: 'email' } });
    expect(properties.oldest).toMatchObject({ type: 'integer' });
    expect(schemas.ApiError).not.toHaveProperty('additionalProperties');
  });
});
