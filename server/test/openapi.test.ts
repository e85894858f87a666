import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { type AnyEndpoint, addressOf } from '../src/http/endpoint.ts';
import { openApiDocument } from '../src/http/openapi.ts';
import { routes } from '../src/routes.gen.ts';
import { checkAgainstContract } from './contract-check.ts';
import type { Json } from './test-app.ts';

const file = '../../docs/openapi.gen.json';
const document: Json = JSON.parse(JSON.stringify(openApiDocument(routes)));

function operationOf(endpoint: AnyEndpoint): Json {
  const address = addressOf(endpoint).replace(/:(\w+)/g, '{$1}');
  return document.paths[address]?.[endpoint.method.toLowerCase()];
}

/** What the viewer suggests to send. */
function exampleOf(schema: Json): unknown {
  if (schema.examples) return schema.examples[0];
  if (schema.anyOf) return exampleOf(schema.anyOf[0]);
  if (schema.type !== 'object') throw new Error(`nothing to suggest for ${JSON.stringify(schema)}`);
  return Object.fromEntries(Object.entries(schema.properties).map(([name, of]) => [name, exampleOf(of)]));
}

describe('OpenAPI document', () => {
  it('is the reviewed one (RUN-8); after an intended change run vitest with -u', async () => {
    await expect(`${JSON.stringify(document, null, 2)}\n`).toMatchFileSnapshot(file);
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

  const taking = routes.filter(({ body }) => body).map((one) => [`${one.method} ${one.path}`, one] as const);

  it.each(taking)('%s: the body that is suggested is taken as it is', (_, endpoint) => {
    const { schema } = operationOf(endpoint).requestBody.content['application/json'];
    expect(endpoint.body?.safeParse(exampleOf(schema)).error).toBeUndefined();
  });

  it('requires what signing in cannot do without, though its absence is 401 (AUTH-6)', () => {
    const { parameters, requestBody } = document.paths['/api/v1/userAccount/authenticate'].post;
    expect(parameters).toMatchObject([{ name: 'x-session-token', in: 'header', required: true }]);
    const { credentials } = requestBody.content['application/json'].schema.properties;
    expect(credentials.required).toEqual(['password']);
  });

  it('says how long text may be, as the rules count it (USER-11, USER-13, PAT-4)', () => {
    const { schema } = document.paths['/api/v1/personal-access-tokens'].post.requestBody.content['application/json'];
    expect(schema.properties.name).toMatchObject({ minLength: 1, maxLength: 100 });
    const { properties } = document.paths['/api/v1/users'].post.requestBody.content['application/json'].schema;
    expect(properties.fullName).toMatchObject({ minLength: 1, maxLength: 255 });
    expect(properties.email).toMatchObject({ format: 'email', maxLength: 254 });
  });
});
