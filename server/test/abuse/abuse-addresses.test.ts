import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addressOf } from '../../src/http/endpoint.ts';
import { routes } from '../../src/routes.gen.ts';
import { requestText, sendRaw } from '../support/raw-http.ts';
import { type Client, organization, TestApp } from '../support/test-app.ts';

const anId = 'a'.repeat(24);
const guarded = routes.filter(({ policy }) => policy.who !== 'anyone' && policy.who !== 'holder');
const addressed = guarded.map((route) => [route.method, addressOf(route).replace(/:\w+/, anId)] as const);

/** Other spellings of an address, which a proxy or a router may take for it. */
const spellings: readonly (readonly [string, (path: string) => string])[] = [
  ['a slash at the end', (path) => `${path}/`],
  ['two slashes in front', (path) => `/${path}`],
  ['two slashes within', (path) => path.replace('/v1/', '/v1//')],
  ['upper case', (path) => path.toUpperCase()],
  ['a parameter of the path', (path) => `${path};x=1`],
  ['an encoded slash', (path) => path.replace('/v1/', '/v1%2f')],
  ['an encoded letter', (path) => path.replace('/api', '/%61pi')],
  ['an encoded question mark', (path) => `${path}%3fx=1`],
  ['NUL at the end', (path) => `${path}%00`],
  ['a dot', (path) => path.replace('/v1/', '/v1/./')],
  ['dots from an open route', (path) => path.replace('/v1/', '/v1/org/exists/../../')],
  ['encoded dots from an open route', (path) => path.replace('/v1/', '/v1/org/exists/%2e%2e/%2e%2e/')],
  ['dots from the documentation', (path) => `/docs/..${path}`],
  ['a backslash', (path) => path.replace('/v1/', '\\v1\\')],
  ['the whole address', (path) => `http://x${path}`],
  ['another host', (path) => `http://evil.example${path}`],
  ['an extension', (path) => `${path}.json`],
  ['a query', (path) => `${path}?public=true`],
  ['a fragment', (path) => `${path}#/org/exists`],
];

/** Addresses that could clash with an id: the status for no credential, a member, an administrator and a service. */
const clashes: readonly (readonly [string, string, string])[] = [
  ['GET', 'dp', '401 200 200 401'],
  ['PUT', 'dp', '401 415 415 401'],
  ['DELETE', 'dp', '401 200 200 401'],
  ['PATCH', 'dp', '405 405 405 405'],
  ['POST', 'dp', '405 405 405 405'],
  ['POST', 'by-ids', '401 400 400 401'],
  ['GET', 'by-ids', '405 405 405 405'],
  ['PUT', 'by-ids', '405 405 405 405'],
  ['DELETE', 'by-ids', '405 405 405 405'],
  ['GET', 'health', '200 200 200 200'],
  ['PUT', 'health', '405 405 405 405'],
  ['DELETE', 'health', '405 405 405 405'],
  ['GET', 'email/exists', '401 401 401 400'],
  ['PATCH', 'email/exists', '405 405 405 405'],
  ['GET', 'email', '401 400 400 401'],
  ['PATCH', 'email/email', '401 403 400 401'],
  ['DELETE', 'email', '401 403 400 401'],
  ['GET', `internal/${anId}`, '401 401 401 404'],
  ['GET', 'internal/adminCheck', '401 401 401 400'],
  ['POST', 'internal/restore', '405 405 405 405'],
  ['PATCH', 'internal/email', '405 405 405 405'],
  ['DELETE', `internal/${anId}`, '405 405 405 405'],
  ['GET', 'internal', '401 400 400 401'],
  ['PUT', 'internal', '401 403 400 401'],
  ['GET', 'fetch/with-groups', '401 200 200 401'],
  ['POST', 'fetch/with-groups', '405 405 405 405'],
  ['GET', 'fetch/adminCheck', '401 403 400 401'],
  ['POST', 'fetch/restore', '401 403 400 401'],
  ['PATCH', 'dp/fullname', '401 403 400 401'],
  ['PATCH', 'by-ids/designation', '401 403 400 401'],
  ['GET', `${anId}/dp`, '404 404 404 404'],
  ['GET', `${anId}/exists`, '404 404 404 404'],
  ['PATCH', `${anId}/mobile`, '404 404 404 404'],
  ['PATCH', `${anId}/fullName`, '404 404 404 404'],
  ['PATCH', `${anId}/firstname`, '404 404 404 404'],
];

describe('A4: no spelling of an address gets past its check', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
  });
  afterAll(() => app.close());

  it.each(spellings)('%s', async (_, spell) => {
    const statuses = await Promise.all(
      addressed.map(
        async ([method, path]) =>
          (await sendRaw(app, requestText(`${method} ${spell(path)} HTTP/1.1`))).answers[0]?.status,
      ),
    );
    expect(statuses.filter((status) => ![400, 401, 404, 405].includes(status ?? 0))).toEqual([]);
  });

  it.each(spellings)('%s, by someone who may not, is no way in either', async (_, spell) => {
    const serviceToken = app.service(['EVENTS_READ']).credential;
    const others = guarded.filter(({ policy }) => policy.who !== 'member');
    for (const { policy, method, ...route } of others) {
      const path = addressOf(route).replace(/:\w+/, anId);
      const credential = policy.who === 'service' ? serviceToken : member.credential;
      const headers = ['Host: x', `Authorization: Bearer ${credential}`];
      const { answers: responses } = await sendRaw(app, requestText(`${method} ${spell(path)} HTTP/1.1`, headers));
      const status = responses[0]?.status ?? 0;
      // The two token-administration endpoints answer 400 to callers who are no administrators.
      expect([method, path, [400, 403, 404, 405].includes(status)]).toEqual([method, path, true]);
    }
    expect((await admin.get('/org')).body.isDeleted).toBe(false);
  });

  it.each(clashes)('%s /users/%s: %s for no one, a member, an administrator, a service (HTTP-5)', async (...clash) => {
    const [method, name, expected] = clash;
    const options = ['POST', 'PUT', 'PATCH'].includes(method) ? { body: {} } : {};
    const statuses: number[] = [];
    for (const caller of [app.anonymous, member, admin, app.service()]) {
      statuses.push((await caller.call(method, `/users/${name}`, options)).status);
    }
    expect(statuses.join(' ')).toBe(expected);
  });

  it('a name in other letters, or with something about it, is an id, and no good one', async () => {
    const names = ['DP', 'Dp', 'By-Ids', 'HEALTH', 'dp;x', 'dp%20', 'dp%00', 'dp%2f', 'health%2f..', 'dp,x'];
    for (const name of names) {
      expect([name, (await member.get(`/users/${name}`)).status]).toEqual([name, 400]);
      expect([name, (await member.delete(`/users/${name}`)).status]).toEqual([name, 403]);
      expect([name, (await app.anonymous.get(`/users/${name}`)).status]).toEqual([name, 401]);
    }
    // The same name, spelled with escapes.
    const headers = ['Host: x', `Authorization: Bearer ${member.credential}`];
    const { answers: responses } = await sendRaw(app, requestText('GET /api/v1/users/%64p HTTP/1.1', headers));
    expect(responses[0]?.body).toEqual({ errorMessage: 'User picture not found' });
  });

  it.each(['//adminCheck', '//restore', '//email', '/internal//', '/internal//x', '//'])(
    '404: /users%s',
    async (path) => {
      for (const method of ['GET', 'POST', 'PATCH', 'DELETE']) {
        for (const caller of [app.anonymous, member, admin, app.service()]) {
          const { status } = await caller.call(method, `/users${path}`);
          expect([method, [404, 405].includes(status)]).toEqual([method, true]);
        }
      }
    },
  );

  it.each(['HEAD', 'OPTIONS', 'TRACE', 'PROPFIND', 'SEARCH', 'QUERY'])('%s', async (method) => {
    for (const [, path] of addressed) {
      const { answers: responses } = await sendRaw(app, requestText(`${method} ${path} HTTP/1.1`));
      const told = responses.map(({ status, text }) => (status === 204 ? text : [401, 405].includes(status)));
      expect([['', true].includes(told[0] ?? false), responses.length]).toEqual([true, 1]);
    }
  });

  it.each(['X-HTTP-Method-Override', 'X-HTTP-Method', 'X-Method-Override', '_method'])(
    '%s changes no method',
    async (name) => {
      const { tokenId } = await admin.token();
      const overridden = await admin.get(`/personal-access-tokens/${tokenId}`, { headers: { [name]: 'DELETE' } });
      expect(overridden.status).toBe(405);
      const posted = await admin.call('POST', `/personal-access-tokens/${tokenId}?_method=DELETE`, {
        headers: { [name]: 'DELETE' },
      });
      expect(posted.status).toBe(405);
      const { body } = await admin.get('/personal-access-tokens');
      expect(body.tokens.map(({ id }: { id: string }) => id)).toContain(tokenId);
    },
  );

  it.each(['X-Original-URL', 'X-Rewrite-URL', 'X-Forwarded-Path', 'X-Forwarded-Prefix'])(
    '%s changes no address',
    async (name) => {
      const headers = { [name]: '/api/v1/org/exists' };
      expect((await app.anonymous.get('/users', { headers })).status).toBe(401);
      const reversed = await app.anonymous.get('/org/exists', { headers: { [name]: '/api/v1/users' } });
      expect(reversed.body).toEqual({ exists: true });
    },
  );

  it('names beside an id: health is open, the others are no ids', async () => {
    expect((await app.anonymous.get('/users/health')).body.status).toBe('healthy');
    expect((await admin.get('/users/Health')).status).toBe(400);
    expect((await app.anonymous.get('/personal-access-tokens/admin')).status).toBe(401);
  });
});

describe('A7: after the organization is deleted (ORG-26)', () => {
  let app: TestApp;

  beforeAll(async () => {
    app = await TestApp.start();
  });
  afterAll(() => app.close());

  it('every route with every token is 401, and no one can take the system over', async () => {
    const admin = await app.setUp();
    const member = await app.member(admin, 'grace@example.com');
    const { body: pair } = await app.signInTokens('grace@example.com');
    const callers: Client[] = [admin, member, await admin.token(), await member.token()];
    for (const caller of callers) expect((await caller.get('/users')).status).toBe(200);
    await app.deleteOrganization();
    for (const caller of callers) {
      for (const [method, path] of addressed) {
        const { status, body } = await caller.call(method, `/${path}`);
        const code = body.error.data?.code ?? body.error.code;
        expect([method, path, status, code]).toEqual([method, path, 401, 'TOKEN_INVALID']);
      }
    }
    expect((await app.with(pair.refreshToken).post('/userAccount/refresh/token')).status).toBe(401);
    expect((await app.signInTokens('grace@example.com')).status).toBe(401);
    expect((await app.anonymous.get('/org/exists')).body).toEqual({ exists: true });
    const again = await app.anonymous.post('/org', organization);
    expect([again.status, again.body.error.code]).toEqual([409, 'CONFLICT']);
  });
});
