import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { RefusedError } from '../../src/base/errors.ts';
import { addressOf } from '../../src/http/endpoint.ts';
import { inputReader } from '../../src/http/input.ts';
import { answerForms, isUpload } from '../../src/http/media.ts';
import { isStrict, openApiDocument } from '../../src/http/openapi/openapi.ts';
import { routes } from '../../src/routes.gen.ts';
import { callTool, codeOf } from '../support/agents.ts';
import { jsonRoutes, sendWith, type World } from '../support/good-requests.ts';
import { MailServer } from '../support/mail-server.ts';
import { storedRows } from '../support/second-connection.ts';
import { type Answer, type Json, TestApp } from '../support/test-app.ts';

const short = (name: string) => name.replace('/api/v1', '');
const nameOf = (route: (typeof routes)[number]) => `${route.method} ${addressOf(route).replace('/api/v1', '')}`;

/** The operations whose body is judged by somebody else's rules, each with them. Rule: CRED-11. */
const lenientBodies = [
  // Messages of JSON-RPC.
  'POST /api/v1/mcp',
  'POST /mcp',
  // RFC 6749, section 3.2: unrecognized parameters are ignored.
  'POST /oauth2/introspect',
  'POST /oauth2/revoke',
  'POST /oauth2/token',
  // Loose for a connector backend; this service itself is strict.
  'POST /teams',
  'PUT /teams/:id',
];

/** The operations whose query may hold anything. Rule: CRED-10. */
const lenientQueries = [
  'GET /.well-known/jwks.json',
  'GET /.well-known/oauth-protected-resource',
  'GET /.well-known/oauth-protected-resource/mcp',
  'GET /.well-known/security.txt',
  'GET /health/live',
  'GET /health/ready',
  'GET /org/health',
  // RFC 6749, section 4.1.2: the provider may send more.
  'GET /userAccount/oidc/callback',
  'GET /userGroups/health',
  'GET /users/health',
];

/** Those whose body is JSON with names of our own, and that succeed more than once. */
const strictBodies = jsonRoutes.map(([name]) => name).filter((name) => !name.includes('/oauth2/'));

/** What answers an array and is no list: one thing with an array in it, or what others wrote the form of. */
const noLists = [
  'GET /.well-known/jwks.json',
  'GET /.well-known/oauth-protected-resource',
  'GET /.well-known/oauth-protected-resource/mcp',
  'GET /orgAuthConfig/authMethods',
  'GET /settings/oidc',
  'GET /userGroups/:groupId',
];

function namesOf(schema: unknown): string[] {
  if (schema instanceof z.ZodOptional) return namesOf(schema.unwrap());
  return schema instanceof z.ZodObject ? Object.keys(schema.shape) : [];
}

/** Reading takes none of them where nothing is forwarded or written. */
const noServices = () => {
  throw new Error('reading an input takes no services');
};

/** What reading an input has to say of it. */
function problemsOf(route: (typeof routes)[number], given: { readonly query?: Json; readonly body?: Json }): Json[] {
  const origin = { requestId: 'r', network: '192.0.2.1' };
  const raw = { params: {}, query: {}, headers: { authorization: 'Bearer x' }, body: undefined, caller: null, origin };
  try {
    inputReader(route, noServices)({ ...raw, ...given });
    return [];
  } catch (error) {
    if (error instanceof RefusedError) return [...(error.details ?? [])];
    throw error;
  }
}

function answersArray({ response }: (typeof routes)[number]): boolean {
  const forms = Object.values(response).flatMap((schema): readonly unknown[] => {
    const { json } = answerForms(schema);
    return json instanceof z.ZodUnion ? json.options : [json];
  });
  const isArray = (schema: unknown) => schema instanceof z.ZodArray;
  return forms.some(
    (form) => isArray(form) || (form instanceof z.ZodObject && Object.values<unknown>(form.shape).some(isArray)),
  );
}

const detailsOf = ({ body }: Answer) => body.error.details;

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

  it('is declared everywhere but where somebody else makes the rules (CRED-2, CRED-3, CRED-10, CRED-11)', () => {
    const isLenient = (schema: z.ZodType | undefined) => schema !== undefined && !isUpload(schema) && !isStrict(schema);
    expect(
      routes
        .filter(({ body }) => isLenient(body))
        .map(nameOf)
        .sort(),
    ).toEqual(lenientBodies.map(short).sort());
    expect(
      routes
        .filter(({ query }) => isLenient(query))
        .map(nameOf)
        .sort(),
    ).toEqual(lenientQueries);
    const lists = routes.filter((route) => route.method === 'GET' && (isStrict(route.query) || answersArray(route)));
    const undeclared = lists.filter(({ query }) => !isStrict(query)).map(nameOf);
    expect(undeclared.sort()).toEqual(noLists);
  });

  it('holds for the query and the body of every operation, also where it declares none (CRED-10, CRED-11)', () => {
    for (const route of routes) {
      const name = nameOf(route);
      const unknown = { quite_other: '1' };
      const ofQuery = { field: 'query.quite_other', message: 'is not a known parameter' };
      const inQuery = problemsOf(route, { query: unknown }).filter(({ field }) => field === ofQuery.field);
      expect(inQuery, name).toEqual(lenientQueries.includes(name) ? [] : [ofQuery]);
      if (isUpload(route.body)) continue;
      const ofBody = { field: 'body.quite_other', message: 'is not a known key' };
      const inBody = problemsOf(route, { body: unknown }).filter(({ field }) => field === ofBody.field);
      expect(inBody, name).toEqual(lenientBodies.map(short).includes(name) ? [] : [ofBody]);
    }
  });

  it('400: parameters that belong in the body make nothing, and are told where they belong (CRED-10)', async () => {
    const before = storedRows(app);
    const asked = await world.member.post('/personal-access-tokens?scopes=user:read', { name: 'x' });
    expect([asked.status, detailsOf(asked)]).toEqual([
      400,
      [{ field: 'query.scopes', message: 'is not a known parameter: did you mean scopes in the body?' }],
    ]);
    const path = `/users/${world.member.userId}`;
    expect((await world.admin.delete(`${path}?dry_run=true`)).status).toBe(400);
    expect((await world.admin.delete(path, { reason: 'left' })).status).toBe(400);
    expect((await world.member.post('/userAccount/logout/manual?all=true')).status).toBe(400);
    expect((await world.member.post('/userAccount/logout/manual', { All: true })).status).toBe(400);
    expect(storedRows(app)).toEqual(before);
  });

  it('200: what existing clients send besides is named, and ignored (CRED-11)', async () => {
    const org = (await world.admin.get('/org')).body;
    expect((await world.admin.put('/org', { ...org, shortName: 'Again' })).status).toBe(200);
    const user = (await world.member.get(`/users/${world.member.userId}`)).body;
    const given = { ...user, role: 'admin', isAdmin: true, designation: 'Admiral' };
    expect((await world.member.put(`/users/${world.member.userId}`, given)).body).toMatchObject({
      designation: 'Admiral',
    });
    expect((await world.member.put(`/users/${world.member.userId}`, { ...given, disignation: 'x' })).status).toBe(400);
    expect((await app.nobody.post('/userAccount/initAuth', { 'cf-turnstile-response': 'x' })).status).toBe(200);
    expect((await app.nobody.post('/userAccount/initAuth', {})).status).toBe(200);
  });

  it('stands in the OpenAPI document', () => {
    const { paths } = openApiDocument(routes) as Json;
    for (const name of strictBodies.filter((one) => !one.includes('/teams'))) {
      const [method = '', path = ''] = name.split(' ');
      const of = paths[`/api/v1${path.replace(/:(\w+)/g, '{$1}')}`][method.toLowerCase()];
      expect(of.requestBody.content['application/json'].schema.additionalProperties, name).toBe(false);
    }
    expect(paths['/api/v1/users'].get.description).toContain('Unknown parameters are refused');
  });

  it.each(strictBodies)(
    '400: an unknown key of %s, wherever it stands, and nothing is changed (CRED-2, CRED-11)',
    async (name) => {
      const [, make] = jsonRoutes.find(([known]) => known === name) ?? [];
      const good = await make?.(world);
      if (!good) throw new Error(`no good request to ${name}`);
      const known = new Set(namesOf(routes.find((route) => nameOf(route) === name)?.body));
      const before = storedRows(app);
      const given = Object.keys(good.body)[0] ?? '';
      const wrong = given.endsWith('s') ? given.slice(0, -1) : `${given}s`;
      const answer = await sendWith(name, good, `${JSON.stringify(wrong)}:1,"quite_other":{"a":[]}`);
      expect([answer.status, detailsOf(answer)]).toEqual([
        400,
        [
          { field: `body.${wrong}`, message: `is not a known key${given === 'ids' ? '' : `: did you mean ${given}?`}` },
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
    },
  );

  it('400: {"scope"} in place of {"scopes"} gives no token with every scope (CRED-2)', async () => {
    const answer = await world.admin.post('/personal-access-tokens', { name: 'Report', scope: ['user:read'] });
    expect([answer.status, detailsOf(answer)]).toEqual([
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
    const answer = await world.admin.post('/personal-access-tokens', odd);
    expect(answer.status).toBe(400);
    expect(detailsOf(answer)).toHaveLength(20);
    expect(answer.text.length).toBeLessThan(5_000);
    expect(detailsOf(answer)).toContainEqual({ field: 'body.name', message: 'is required' });
    expect(detailsOf(answer)).toContainEqual({ field: 'body.a\nb', message: 'is not a known key' });
  });

  it('refuses an unknown argument of a tool likewise (CRED-2)', async () => {
    const invited = await callTool(world.admin, 'invite_users', { emails: ['x@example.com'], groupId: [] });
    expect(codeOf(invited)).toBe('VALIDATION_ERROR');
    expect(invited.content[0].text).toContain('is not a known argument: did you mean groupIds?');
    const listed = await callTool(world.admin, 'list_users', { serch: 'Ada' });
    expect(listed.content[0].text).toContain('did you mean search?');
  });

  const lists = routes
    .filter(({ query, path, policy }) => isStrict(query) && !path.includes(':') && policy.who !== 'service')
    .filter(({ policy }) => policy.who !== 'anyone')
    .map((route) => nameOf(route));
  it.each(lists)('400: an unknown parameter of %s, and `_` is none (CRED-3)', async (name) => {
    const path = name.replace('GET ', '');
    const answer = await world.admin.get(`${path}?limits=1`);
    expect([answer.status, detailsOf(answer)[0].field]).toEqual([400, 'query.limits']);
    expect(detailsOf(answer)[0].message).toMatch(/^is not a known parameter(: did you mean limit\?)?$/);
    expect([(await world.admin.get(`${path}?_=1795810620000`)).status, path]).toEqual([200, path]);
  });

  it('200: `_` asks for no page; a member who may not ask is told nothing of parameters (HTTP-4, USER-14)', async () => {
    expect((await world.admin.get('/users?_=1')).body).toHaveLength((await world.admin.get('/users')).body.length);
    expect((await world.member.get('/personal-access-tokens/admin?limits=1')).body.message).toBe(
      'Admin access required',
    );
    expect((await app.nobody.get('/users?limits=1')).status).toBe(401);
  });

  it('200: isBlocked, which earlier clients send: nobody is (CRED-3)', async () => {
    expect((await world.admin.get('/users?isBlocked=true')).body).toEqual([]);
    const { length } = (await world.admin.get('/users')).body;
    expect((await world.admin.get('/users?isBlocked=false')).body).toHaveLength(length);
    const { users, pagination } = (await world.admin.get('/users?isBlocked=true&page=1')).body;
    expect([users, pagination.totalCount]).toEqual([[], 0]);
    expect((await world.admin.get('/users?isBlocked=false&page=1')).body.users).toHaveLength(length);
    expect((await world.admin.get('/users?isBlocked=yes')).status).toBe(400);
  });
});
