import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { claimsOf, compactJwt, hmac } from '../../../test/support/jwt.ts';
import {
  basic,
  describable,
  formTo,
  introspect,
  issuedTo,
  type RegisteredService,
  registerService,
} from '../../../test/support/service-clients.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';
import { toTimestamp } from '../../base/clock.ts';

const path = '/oauth2/introspect';
const email = 'ada@example.com';
const inactive = '{"active":false}';

let app: TestApp;
let admin: Client;
let service: RegisteredService;

beforeAll(async () => {
  app = await TestApp.start({ BASE_URL: 'https://id.example.com' });
  admin = await app.setUp();
  service = await registerService(admin);
});
afterAll(() => app.close());

const ask = (token: string | null) => introspect(app, service, token ?? '');
const said = async (token: string | null) => (await ask(token)).text;
const secondsOf = (timestamp: string) => Math.floor(Date.parse(timestamp) / 1_000);

describe('POST /oauth2/introspect: what is good', () => {
  it('200: a personal access token, with its display prefix and without (SERVICE-15, SERVICE-19)', async () => {
    const token = await admin.token({ scopes: ['org:read', 'user:read'], expiryDays: 30 });
    const { body: list } = await admin.get('/personal-access-tokens');
    const { expiresAt } = list.tokens.find(({ id }: Json) => id === token.tokenId);
    const { orgId } = claimsOf(admin.credential ?? '');
    const { status, body, headers } = await ask(token.credential);
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-store']);
    expect(body).toEqual({
      active: true,
      token_type: 'Bearer',
      tokenType: 'oauth',
      scope: 'org:read user:read',
      client_id: `pat-system:${String(orgId)}`,
      sub: admin.userId,
      iss: 'https://id.example.com',
      orgId,
      exp: secondsOf(expiresAt),
    });
    expect((await ask((token.credential ?? '').replace('lkpat_', ''))).body).toEqual(body);
  });

  it('200: a personal access token that never expires has no exp (SERVICE-19)', async () => {
    const { body } = await ask((await admin.token({ expiryDays: 'never' })).credential);
    expect([body.active, 'exp' in body]).toEqual([true, false]);
  });

  it('200: a session, which has no scopes (SERVICE-19)', async () => {
    const { orgId, exp } = claimsOf(admin.credential ?? '');
    const common = { active: true, token_type: 'Bearer', iss: 'https://id.example.com' };
    expect((await ask(admin.credential)).body).toEqual({
      ...common,
      tokenType: 'session',
      sub: admin.userId,
      orgId,
      exp,
    });
  });

  it('200: a scoped token that was issued (SERVICE-19)', async () => {
    const { credential } = await issuedTo(app, service, { scope: 'user:lookup EVENTS_READ' });
    const { clientId } = service;
    const common = { active: true, token_type: 'Bearer', iss: 'https://id.example.com' };
    expect((await ask(credential)).body).toEqual({
      ...common,
      tokenType: 'scoped',
      scope: 'USER_LOOKUP EVENTS_READ',
      client_id: clientId,
      sub: clientId,
      exp: claimsOf(credential)['exp'],
    });
  });

  it('200: a scoped token that a service signed itself, which is no one’s here (SERVICE-14, SERVICE-19)', async () => {
    const more = { sub: admin.userId, iss: 'https://id.example.com', client_id: service.clientId, orgId: 'x' };
    const { credential } = app.service(['fetch:config', 'EVENTS_READ', 'USER_LOOKUP TOKEN_INTROSPECT'], more);
    expect((await ask(credential)).body).toEqual({
      active: true,
      token_type: 'Bearer',
      tokenType: 'scoped',
      scope: 'FETCH_CONFIG EVENTS_READ',
      exp: claimsOf(credential ?? '')['exp'],
    });
  });

  it('200: whatever hint comes with it (SERVICE-15)', async () => {
    for (const hint of ['access_token', 'refresh_token', 'nonsense', '']) {
      const fields = { token: admin.credential ?? '', token_type_hint: hint };
      expect((await formTo(app)(path, fields, basic(service))).body.active).toBe(true);
    }
  });

  it('200: asked as a form or as JSON, by Basic or in the body (SERVICE-15, SERVICE-17)', async () => {
    const token = admin.credential ?? '';
    const inBody = { client_id: service.clientId, client_secret: service.clientSecret };
    const responses = await Promise.all([
      formTo(app)(path, { token }, basic(service)),
      formTo(app)(path, { token, ...inBody }),
      app.anonymous.post(path, { token }, { headers: basic(service) }),
      app.anonymous.post(path, { token, ...inBody }),
    ]);
    expect(responses.map(({ status, body }) => [status, body.active])).toEqual(responses.map(() => [200, true]));
  });

  it('tells what is left of scopes that the instance grants no more (SCOPE-9, SERVICE-19)', async () => {
    const own = await TestApp.start();
    const owner = await own.setUp();
    const asking = await registerService(owner);
    const token = await owner.token({ scopes: ['org:read', 'user:read'] });
    const scope = async () => (await introspect(own, asking, token.credential ?? '')).body.scope;
    expect(await scope()).toBe('org:read user:read');
    own.environment['MCP_SCOPES'] = 'user:read token:read';
    own.services.reloadConfig();
    expect(await scope()).toBe('user:read');
    own.environment['MCP_SCOPES'] = 'token:read';
    own.services.reloadConfig();
    expect(await scope()).toBe('');
    await own.close();
  });

  it('asking about an active token is a use of it, about another one none: lastUsedAt (CRED-9, PAT-30)', async () => {
    const [token, ended] = [await admin.token({ name: 'never used' }), await admin.token({ name: 'ended' })];
    await admin.delete(`/personal-access-tokens/${ended.tokenId}`);
    const usedAt = async (id: string) => {
      const { body } = await admin.get('/personal-access-tokens/admin?status=all&limit=100');
      return body.data.find((item: Json) => item.id === id).lastUsedAt;
    };
    expect(await usedAt(token.tokenId)).toBeNull();
    app.clock.advance(61_000);
    const asked = toTimestamp(app.clock.now());
    expect((await ask(ended.credential)).body.active).toBe(false);
    expect((await ask(token.credential)).body.active).toBe(true);
    await expect.poll(() => usedAt(token.tokenId), { timeout: 15_000 }).toBe(asked);
    // What is written behind requests would be there by now.
    expect(await usedAt(ended.tokenId)).toBeNull();
  });
});

describe('POST /oauth2/introspect: what is not', () => {
  it('200 { active: false }: tokens that ended (SERVICE-19)', async () => {
    const token = await admin.token();
    expect((await ask(token.credential)).body.active).toBe(true);
    await admin.delete(`/personal-access-tokens/${token.tokenId}`);
    const session = await app.signIn(email);
    await session.post('/userAccount/logout/manual');
    const holder = await issuedTo(app, service);
    await formTo(app)('/oauth2/revoke', { token: holder.credential }, basic(service));
    const gone = await registerService(admin);
    const orphan = await issuedTo(app, gone);
    await admin.delete(`/service-clients/${gone.clientId}`);
    for (const { credential } of [token, session, holder, orphan]) expect(await said(credential)).toBe(inactive);
  });

  it('200 { active: false }: what belongs to someone who was deleted, restored or not (SERVICE-19, AUTH-24)', async () => {
    const member = await app.member(admin, 'grace@example.com');
    const token = await member.token({ expiryDays: 'never' });
    expect((await ask(token.credential)).body.active).toBe(true);
    await app.deleteUser(member.userId);
    for (const { credential } of [member, token]) expect(await said(credential)).toBe(inactive);
    expect((await admin.post(`/users/${member.userId}/restore`)).status).toBe(200);
    for (const { credential } of [member, token]) expect(await said(credential)).toBe(inactive);
  });

  it('200 { active: false }: credentials that are no bearer tokens of a route, and what is none at all (SERVICE-19, AUTH-28)', async () => {
    const { body: pair } = await app.signInTokens(email);
    const begun = await app.anonymous.post('/userAccount/initAuth', { email });
    const scoped = app.service().credential ?? '';
    const issued = (await issuedTo(app, service)).credential;
    const token = (await admin.token()).credential ?? '';
    const values = [
      pair.refreshToken,
      begun.headers.get('x-session-token') ?? '',
      service.clientSecret,
      service.clientId,
      // The prefix is a personal access token's own.
      `lkpat_${issued}`,
      `lkpat_${scoped}`,
      `lkpat_${token}`,
      token.toUpperCase(),
      `${token}=`,
      `${token} x`,
      `${token}\n`,
      compactJwt({ alg: 'none' }, claimsOf(token), () => ''),
      compactJwt({ alg: 'HS256' }, claimsOf(scoped), hmac('another secret')),
      (await app.services.keys.sign({ ...claimsOf(issued), jti: 'f'.repeat(24) })).expose(),
      'x',
      '..',
      '\u20ac',
      "' OR 1=1 --",
      'null',
      'x'.repeat(8_193),
      'x'.repeat(10_000),
    ];
    const responses = await Promise.all(values.map(said));
    expect(responses).toEqual(values.map(() => inactive));
    expect((await app.with(pair.refreshToken).post('/userAccount/refresh/token')).status).toBe(200);
  });

  it('200 { active: false }: tokens expired, to the millisecond (SERVICE-19)', async () => {
    const own = await TestApp.start();
    const owner = await own.setUp();
    const asking = await registerService(owner);
    const isActive = async (token: string | null) => (await introspect(own, asking, token ?? '')).body.active;
    const scoped = (await issuedTo(own, asking)).credential;
    const self = own.service(['USER_LOOKUP']).credential;
    const token = (await owner.token({ expiryDays: 30 })).credential;
    const secondMs = Math.floor(own.clock.now() / 1_000) * 1_000;
    for (const [credential, endMs] of [
      [scoped, secondMs + 3_600_000],
      [self, secondMs + 3_600_000],
      [owner.credential, secondMs + 86_400_000],
      [token, secondMs + 30 * 86_400_000],
    ] as const) {
      own.clock.set(endMs - 1);
      expect(await isActive(credential)).toBe(true);
      own.clock.set(endMs);
      expect(await isActive(credential)).toBe(false);
    }
    await own.close();
  });

  it('200 { active: false }: every token of a person once the organization is deleted, and no service’s (SERVICE-19, AUTH-24)', async () => {
    const own = await TestApp.start();
    const owner = await own.setUp();
    const asking = await registerService(owner);
    const [token, scoped] = [await owner.token(), await issuedTo(own, asking)];
    await own.deleteOrganization();
    const states = [owner, token, scoped].map(
      async ({ credential }) => (await introspect(own, asking, credential ?? '')).body.active,
    );
    expect(await Promise.all(states)).toEqual([false, false, true]);
    await own.close();
  });

  it('200 { active: false }: self-signed, where no secret is shared, or with another exp than is taken (SERVICE-14, SERVICE-19)', async () => {
    const nowSeconds = Math.floor(app.clock.now() / 1_000);
    for (const exp of [undefined, null, nowSeconds - 1, nowSeconds + 86_401 + 1, 'soon', 1e308]) {
      expect(await said(app.service(['USER_LOOKUP'], { exp }).credential)).toBe(inactive);
    }
    const alone = await TestApp.start({ SCOPED_JWT_SECRET: '' });
    const asking = await registerService(await alone.setUp());
    expect((await introspect(alone, asking, alone.service().credential ?? '')).text).toBe(inactive);
    await alone.close();
  });
});

describe('POST /oauth2/introspect: who may not ask', () => {
  it('400: without a token, or with one that is too long (SERVICE-15, ERR-5)', async () => {
    for (const fields of ['', 'token=', `token=${'x'.repeat(10_001)}`, 'token=a&token=b']) {
      const { status, body } = await formTo(app)(path, fields, basic(service));
      expect([status, body.error]).toEqual([400, 'invalid_request']);
      expect(body.error_description).toMatch(describable);
    }
  });

  it('401: who does not prove to be a service, a bearer of any kind included (SERVICE-17, ERR-5)', async () => {
    const token = admin.credential ?? '';
    const scoped = await issuedTo(app, service);
    const bearer = (value: string | null) => formTo(app)(path, { token }, { authorization: `Bearer ${value}` });
    const responses = await Promise.all([
      formTo(app)(path, { token }),
      formTo(app)(path, { token }, basic({ ...service, clientSecret: 'wrong' })),
      bearer(scoped.credential),
      bearer(token),
      bearer(app.service(['TOKEN_INTROSPECT']).credential),
    ]);
    for (const { status, body, headers } of responses) {
      const challenge = headers.get('www-authenticate');
      expect([status, body.error, challenge]).toEqual([401, 'invalid_client', 'Basic realm="latchkey"']);
    }
  });

  it('403 unauthorized_client: a service without TOKEN_INTROSPECT learns nothing (SERVICE-15, ERR-5)', async () => {
    const other = await registerService(admin, ['USER_LOOKUP', 'FETCH_CONFIG', 'EVENTS_READ']);
    const own = await issuedTo(app, other);
    for (const token of [admin.credential ?? '', own.credential, 'unknown']) {
      const { status, body } = await introspect(app, other, token);
      const error_description = 'This takes a client with the scope TOKEN_INTROSPECT';
      expect([status, body]).toEqual([403, { error: 'unauthorized_client', error_description }]);
    }
  });
});
