import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { addressOf } from '../../src/http/endpoint.ts';
import { openApiDocument } from '../../src/http/openapi/openapi.ts';
import { eventTypes } from '../../src/outbox/envelope.ts';
import { routes } from '../../src/routes.gen.ts';
import type { Json } from '../support/test-app.ts';

const document: Json = JSON.parse(JSON.stringify(openApiDocument(routes)));
const matrix = readFileSync(new URL('snapshots/access-matrix.md', import.meta.url), 'utf8');

function operations(): [string, Json][] {
  return routes.map((endpoint) => {
    const address = addressOf(endpoint);
    const operation = document.paths[address.replace(/:(\w+)/g, '{$1}')][endpoint.method.toLowerCase()];
    return [`${endpoint.method} ${address}`, operation];
  });
}

/** Returns every object in a part of the document. */
function schemasIn(given: unknown): Json[] {
  if (Array.isArray(given)) return given.flatMap(schemasIn);
  if (typeof given !== 'object' || given === null) return [];
  return [given, ...Object.values(given).flatMap(schemasIn)];
}

describe('OpenAPI document for generated clients', () => {
  it('names what several answers hold, and refers to it (FIT-121)', () => {
    const { schemas } = document.components;
    const named = ['User', 'PersonalAccessToken', 'UserGroup', 'Team', 'UserPage', 'Pagination', 'Webhook', 'Message'];
    expect(Object.keys(schemas)).toEqual(expect.arrayContaining(named));
    const ofUser = document.paths['/api/v1/users/{id}'].get.responses['200'].content['application/json'].schema;
    expect(ofUser).toEqual({ $ref: '#/components/schemas/User' });
    const written = Object.entries<Json>(schemas).map(([name, schema]) => [name, JSON.stringify(schema)]);
    for (const { responses } of operations().map(([, operation]) => operation)) {
      const inlined = schemasIn(responses).filter(({ properties }) => properties);
      const copies = inlined.map((one) => written.find(([, text]) => text === JSON.stringify(one))?.[0]);
      expect(copies.filter((name) => name !== undefined)).toEqual([]);
    }
  });

  it('has no reference that leads nowhere, and no component that nothing refers to (FIT-121)', () => {
    const { securitySchemes: _, ...components } = document.components;
    const there = Object.entries<Json>(components).flatMap(([kind, all]) =>
      Object.keys(all).map((name) => `#/components/${kind}/${name}`),
    );
    const referred = new Set(schemasIn(document).flatMap(({ $ref }) => (typeof $ref === 'string' ? [$ref] : [])));
    expect([...referred].sort()).toEqual(there.sort());
  });

  it('leaves answers open to further members, and declares no range of statuses (FIT-122)', () => {
    const answers = operations().map(([, { responses }]) => responses);
    const closed = schemasIn([answers, document.components]).filter((one) => one.additionalProperties === false);
    expect(closed).toEqual([]);
    for (const statuses of answers.map(Object.keys)) {
      for (const status of statuses) expect(status).toMatch(/^(\d{3}|default)$/);
    }
  });

  it('declares each refusal that the access matrix shows (FIT-123)', () => {
    const documented = new Map(operations());
    const rows = matrix.split('\n').map((row) => row.split('|').map((cell) => cell.trim()));
    const ofOperations = rows.filter(([, name = '']) => documented.has(name));
    expect(ofOperations.length).toBe(routes.length);
    const missing = ofOperations.flatMap(([, name = '', ...cells]) => {
      const statuses = new Set(cells.join(' ').match(/\b4\d\d\b/g));
      const declared = Object.keys(documented.get(name)?.responses ?? {});
      return [...statuses].filter((status) => !declared.includes(status)).map((status) => `${name}: ${status}`);
    });
    expect(missing).toEqual([]);
  });

  it('shows the headers of refusals, and an example of each (FIT-123)', () => {
    const { responses, headers } = document.components;
    expect(Object.keys(headers)).toEqual(['Retry-After', 'WWW-Authenticate', 'X-Request-Id']);
    expect(Object.keys(responses.TooManyRequests.headers)).toEqual(['Retry-After', 'X-Request-Id']);
    expect(Object.keys(responses.Unauthorized.headers)).toEqual(['WWW-Authenticate', 'X-Request-Id']);
    expect(responses.Forbidden.content['application/json'].example.error.code).toBe('ADMIN_REQUIRED');
  });

  it('marks what takes a session (FIT-123)', () => {
    const marked = operations().filter(([, operation]) => operation['x-session-only'] === true);
    const declared = routes.filter(({ policy }) => 'sessionOnly' in policy);
    expect(marked.map(([name]) => name)).toEqual(declared.map((one) => `${one.method} ${addressOf(one)}`));
  });

  it('describes each event that webhooks get (FIT-124)', () => {
    expect(Object.keys(document.webhooks).sort()).toEqual([...eventTypes].sort());
    const { schema } = document.webhooks.userDeleted.post.requestBody.content['application/json'];
    expect(schema.properties.eventType).toMatchObject({ const: 'userDeleted' });
    expect(schema.properties.payload.required).toEqual(['orgId', 'userId', 'email']);
  });
});
