import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { addressOf } from '../../src/http/endpoint.ts';
import { responseForms } from '../../src/http/media.ts';
import { openApiDocument } from '../../src/http/openapi/openapi.ts';
import { isStrict } from '../../src/http/schemas.ts';
import { routes } from '../../src/routes.gen.ts';
import { callTool, codeOf } from '../support/agents.ts';
import { MailServer } from '../support/mail-server.ts';
import { storedRows } from '../support/second-connection.ts';
import { type Json, TestApp, type TestResponse } from '../support/test-app.ts';
import { jsonRoutes, sendWith, type World } from '../support/valid-requests.ts';

const nameOf = (route: (typeof routes)[number]) => `${route.method} ${addressOf(route).replace('/api/v1', '')}`;

/** The operations whose body gives power. Rule: CRED-2. */
const powerful = [
  'PATCH /webhooks/:webhookId',
  'POST /configurationManager/smtpConfig',
  'POST /orgAuthConfig',
  'POST /orgAuthConfig/updateAuthMethod',
  'POST /personal-access-tokens',
  'POST /service-clients',
  'POST /service-clients/:clientId/rotate',
  'POST /users/bulk/invite',
  'POST /webhooks',
  'PUT /settings/oidc',
  'PUT /settings/smtp',
];

/** The operations that take a form with more than a file, which is strict, too. */
const forms = ['POST /users/bulk/invite/upload'];

/** The operations of which a key that is left out means more, or less protection. Rule: CRED-11. */
const protective = [
  'DELETE /personal-access-tokens/:tokenId',
  'DELETE /personal-access-tokens/admin/:tokenId',
  'DELETE /users/:id/personal-access-tokens',
  'POST /events/dead-letters/requeue',
  'POST /events/relays/replay',
  'POST /userAccount/email/confirm',
  'POST /userAccount/email/confirm/token',
  'POST /webhooks/:webhookId/replay',
];

/** Endpoints that return an array and are no list: one thing with an array in it, or a form that others define. */
const noLists = [
  'GET /.well-known/jwks.json',
  'GET /.well-known/oauth-protected-resource',
  'GET /.well-known/oauth-protected-resource/mcp',
  'GET /orgAuthConfig/authMethods',
  'GET /settings/oidc',
  'GET /userGroups/:groupId',
  'GET /users/email/exists',
];

function answersArray({ response }: (typeof routes)[number]): boolean {
  const forms = Object.values(response).flatMap((schema): readonly unknown[] => {
    const { json } = responseForms(schema);
    return json instanceof z.ZodUnion ? json.options : [json];
  });
  const isArray = (schema: unknown) => schema instanceof z.ZodArray;
  return forms.some(
    (form) => isArray(form) || (form instanceof z.ZodObject && Object.values<unknown>(form.shape).some(isArray)),
  );
}

const detailsOf = ({ body }: TestResponse) => body.error.details;

describe('strict input', () => {
  let mails: MailServer;
  let app: TestApp;
  let world: World;
  beforeAll(async () => {
    mails = await MailServer.start();
    app = await TestApp.start({ SMTP_URL: mails.url });
    const admin = await app.setUp();
    const memberEmail = 'grace@example.com';
    world = { app, admin, member: await app.member(admin, memberEmail), memberEmail };
  });
  afterAll(async () => {
    await app.close();
    await mails.stop();
  });

  it.each([
    ['POST /personal-access-tokens?scopes=user:read', { name: 'x' }, 'scopes in the body'],
    ['DELETE /users/:id/sessions?sessionId=x', undefined, 'is not a known'],
  ])('400: %s, whose parameter would have narrowed or widened it (CRED-10)', async (call, body, hint) => {
    const [method = '', path = ''] = call.replace(':id', world.member.userId).split(' ');
    const before = storedRows(app);
    const response = await world.admin.call(method, path, body === undefined ? {} : { body });
    const problem = { field: expect.stringMatching(/^query\./), message: expect.stringContaining(hint) };
    expect([response.status, response.body.error?.details]).toEqual([400, [problem]]);
    expect(storedRows(app)).toEqual(before);
  });

  it('is declared for each body that gives power, and for each list (CRED-2, CRED-3)', () => {
    const strict = routes.filter(({ body }) => isStrict(body)).map(nameOf);
    expect(strict.sort()).toEqual([...powerful, ...protective, ...forms].sort());
    const lists = routes.filter((route) => route.method === 'GET' && (isStrict(route.query) || answersArray(route)));
    const lenient = lists.filter(({ query }) => !isStrict(query)).map(nameOf);
    expect(lenient.sort()).toEqual(noLists);
  });

  it('stands in the OpenAPI document', () => {
    const { paths } = openApiDocument(routes) as Json;
    for (const name of powerful) {
      const [method = '', path = ''] = name.split(' ');
      const of = paths[`/api/v1${path.replace(/:(\w+)/g, '{$1}')}`][method.toLowerCase()];
      expect(of.requestBody.content['application/json'].schema.additionalProperties, name).toBe(false);
    }
    expect(paths['/api/v1/users'].get.description).toContain('Unknown parameters are rejected');
  });

  it.each(powerful)('400: an unknown key of %s, wherever it stands, and nothing is changed (CRED-2)', async (name) => {
    const [, make] = jsonRoutes.find(([known]) => known === name) ?? [];
    const good = await make?.(world);
    if (!good) throw new Error(`no good request to ${name}`);
    const { body } = routes.find((route) => nameOf(route) === name) ?? {};
    const known = new Set(body instanceof z.ZodObject ? Object.keys(body.shape) : []);
    const before = storedRows(app);
    const given = Object.keys(good.body)[0] ?? '';
    const wrong = given.endsWith('s') ? given.slice(0, -1) : `${given}s`;
    const response = await sendWith(name, good, `${JSON.stringify(wrong)}:1,"quite_other":{"a":[]}`);
    expect([response.status, detailsOf(response)]).toEqual([
      400,
      [
        { field: `body.${wrong}`, message: `is not a known key: did you mean ${given}?` },
        { field: 'body.quite_other', message: 'is not a known key' },
      ],
    ]);
    await fc.assert(
      fc.asyncProperty(
        fc.string({ minLength: 1, maxLength: 20 }),
        fc.jsonValue({ maxDepth: 2 }),
        async (key, value) => {
          fc.pre(!known.has(key) && key.isWellFormed() && !key.includes('\0'));
          const { status } = await sendWith(name, good, `${JSON.stringify(key)}:${JSON.stringify(value)}`);
          expect(status).toBe(400);
        },
      ),
      { numRuns: 10 },
    );
    expect(storedRows(app)).toEqual(before);
  });

  it('400: {"scope"} in place of {"scopes"} gives no token with every scope (CRED-2)', async () => {
    const response = await world.admin.post('/personal-access-tokens', { name: 'Report', scope: ['user:read'] });
    expect([response.status, detailsOf(response)]).toEqual([
      400,
      [{ field: 'body.scope', message: 'is not a known key: did you mean scopes?' }],
    ]);
    const nested = [{ order: 1, allowedMethods: [{ type: 'password', kind: 'otp' }], orders: 2 }];
    const steps = await world.admin.post('/orgAuthConfig/updateAuthMethod', { authMethod: nested });
    expect(detailsOf(steps).map(({ field }: Json) => field)).toEqual([
      'body.authMethod.0.allowedMethods.0.kind',
      'body.authMethod.0.orders',
    ]);
  });

  it('400: many unknown keys, long ones and odd ones are named within bounds, beside whatever else is wrong', async () => {
    const odd = {
      [`k${'x'.repeat(5_000)}`]: 1,
      'a\nb': 1,
      ...Object.fromEntries(Array.from({ length: 5_000 }, (_, i) => [`u${i}`, 1])),
    };
    const response = await world.admin.post('/personal-access-tokens', odd);
    expect(response.status).toBe(400);
    expect(detailsOf(response)).toHaveLength(20);
    expect(response.text.length).toBeLessThan(5_000);
    expect(detailsOf(response)).toContainEqual({ field: 'body.name', message: 'is required' });
    expect(detailsOf(response)).toContainEqual({ field: 'body.a\nb', message: 'is not a known key' });
  });

  it('refuses an unknown argument of a tool likewise (CRED-2)', async () => {
    const invited = await callTool(world.admin, 'invite_users', { emails: ['x@example.com'], groupId: [] });
    expect(codeOf(invited)).toBe('VALIDATION_ERROR');
    expect(invited.content[0].text).toContain('is not a known argument: did you mean groupIds?');
    const listed = await callTool(world.admin, 'list_users', { serch: 'Ada' });
    expect(listed.content[0].text).toContain('did you mean search?');
  });

  const lists = routes
    .filter(({ query, path }) => isStrict(query) && !path.includes(':'))
    .map((route) => nameOf(route));
  it.each(lists)('400: an unknown parameter of %s, and `_` is none (CRED-3)', async (name) => {
    const path = name.replace('GET ', '');
    const response = await world.admin.get(`${path}?limits=1`);
    expect([response.status, detailsOf(response)[0].field]).toEqual([400, 'query.limits']);
    expect(detailsOf(response)[0].message).toMatch(/^is not a known parameter(: did you mean limit\?)?$/);
    expect([(await world.admin.get(`${path}?_=1795810620000`)).status, path]).toEqual([200, path]);
  });

  it('200: `_` asks for no page; a member who may not ask is told nothing of parameters (HTTP-4, USER-14)', async () => {
    expect((await world.admin.get('/users?_=1')).body).toHaveLength(2);
    expect((await world.member.get('/personal-access-tokens/admin?limits=1')).body.message).toBe(
      'Admin access required',
    );
    expect((await app.anonymous.get('/users?limits=1')).status).toBe(401);
  });

  it('200: isBlocked, which earlier clients send: no one is (CRED-3)', async () => {
    expect((await world.admin.get('/users?isBlocked=true')).body).toEqual([]);
    expect((await world.admin.get('/users?isBlocked=false')).body).toHaveLength(2);
    const { users, pagination } = (await world.admin.get('/users?isBlocked=true&page=1')).body;
    expect([users, pagination.totalCount]).toEqual([[], 0]);
    expect((await world.admin.get('/users?isBlocked=false&page=1')).body.users).toHaveLength(2);
    expect((await world.admin.get('/users?isBlocked=yes')).status).toBe(400);
  });
});
