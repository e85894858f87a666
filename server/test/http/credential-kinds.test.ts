import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compactJwt, hmac } from '../support/jwt.ts';
import { MailServer, tokenIn } from '../support/mail-server.ts';
import { beginSignIn, claimsOf } from '../support/sign-in.ts';
import { type Client, password, TestApp } from '../support/test-app.ts';

const email = 'ada@example.com';
const kinds = [
  'session',
  'token with prefix',
  'token without prefix',
  'refresh token',
  'x-session-token',
  'service token',
  'service token with a display prefix',
  'secret of a reset link',
  'secret of an invitation link',
] as const;
type Kind = (typeof kinds)[number];

describe('a credential of one kind where another belongs', () => {
  let mails: MailServer;
  let app: TestApp;
  let admin: Client;
  const credentials = new Map<Kind, string>();
  beforeAll(async () => {
    mails = await MailServer.start();
    app = await TestApp.start({ SMTP_URL: mails.url });
    admin = await app.setUp();
    const { body: pair } = await app.signInTokens(email);
    const { credential } = await admin.token({ expiryDays: 'never' });
    credentials.set('session', pair.accessToken);
    credentials.set('token with prefix', credential ?? '');
    credentials.set('token without prefix', (credential ?? '').replace('lkpat_', ''));
    credentials.set('refresh token', pair.refreshToken);
    credentials.set('x-session-token', await beginSignIn(app, email));
    const service = app.service(['USER_LOOKUP', 'FETCH_CONFIG']).credential ?? '';
    credentials.set('service token', service);
    credentials.set('service token with a display prefix', `lkpat_${service}`);
    await app.anonymous.post('/userAccount/password/forgot', { email });
    credentials.set('secret of a reset link', tokenIn(await mails.mailTo(email)));
    const { _id } = (await admin.post('/users', { fullName: 'Guest', email: 'guest@example.com' })).body;
    const { link } = (await admin.post(`/users/${_id}/invite-link`)).body;
    credentials.set('secret of an invitation link', link.split('#token=')[1]);
  });
  afterAll(async () => {
    await app.close();
    await mails.stop();
  });

  const entryPoints: readonly { name: string; open: readonly Kind[]; knock: (value: string) => Promise<number> }[] = [
    {
      name: 'a route of members',
      open: ['session', 'token with prefix', 'token without prefix'],
      knock: async (value) => (await app.with(value).get('/org')).status,
    },
    {
      name: 'the refresh route',
      open: ['refresh token'],
      knock: async (value) => (await app.with(value).post('/userAccount/refresh/token')).status,
    },
    {
      name: 'a route of services',
      open: ['service token'],
      knock: async (value) => (await app.with(value).get(`/users/internal/${admin.userId}`)).status,
    },
    {
      name: 'a route of services that takes a body',
      open: ['service token'],
      knock: async (value) => (await app.with(value).get(`/users/email/exists?email=${email}`)).status,
    },
    {
      name: 'a route of administrators',
      open: ['session', 'token with prefix', 'token without prefix'],
      knock: async (value) => (await app.with(value).patch('/org', {})).status,
    },
    {
      name: 'the route that sets a password by a link',
      open: ['secret of a reset link', 'secret of an invitation link'],
      // Too short: whose link it is not finds out before. And nothing is used up.
      knock: async (value) => {
        const { status } = await app.with(value).post('/userAccount/password/reset/token', { password: 'x' });
        return status === 400 ? 200 : status;
      },
    },
    {
      name: 'the header x-session-token',
      open: ['x-session-token'],
      knock: async (value) => {
        const body = { method: 'password', credentials: { password }, email };
        return (await app.anonymous.post('/userAccount/authenticate', body, { headers: { 'x-session-token': value } }))
          .status;
      },
    },
  ];
  for (const { name, open, knock } of entryPoints) {
    for (const kind of kinds) {
      const expected = open.includes(kind) ? 200 : 401;
      it(`${expected}: ${kind} at ${name} (AUTH-28, AUTH-33, SERVICE-1, SERVICE-2)`, async () => {
        expect(await knock(credentials.get(kind) ?? '')).toBe(expected);
      });
    }
  }

  it('401: claims that call it another kind, signed by the service itself (AUTH-26, AUTH-28)', async () => {
    const { keys } = app.services;
    const claims = claimsOf(credentials.get('session') ?? '');
    for (const tokenType of ['session', 'oauth', 'refresh', 'sign-in', 'scoped']) {
      const forged = await keys.sign({ ...claims, jti: 'f'.repeat(24), tokenType, scopes: ['USER_LOOKUP'] });
      expect((await app.with(forged.expose()).get(`/users/internal/${admin.userId}`)).status).toBe(401);
      expect((await app.with(forged.expose()).get('/org')).status).toBe(401);
      expect((await app.with(forged.expose()).post('/userAccount/refresh/token')).status).toBe(401);
    }
  });

  it.each([
    ['no list', undefined],
    ['null', null],
    ['the name in a text', 'USER_LOOKUP'],
    ['an object', { 0: 'USER_LOOKUP', length: 1 }],
    ['a list that is empty', []],
    ['a list with more than names', ['USER_LOOKUP', 7]],
    ['a list in a list', [['USER_LOOKUP']]],
  ])(
    '403: a scoped token, well signed, that grants nothing: its scopes are %s (SERVICE-3, SERVICE-14)',
    async (...[, scopes]) => {
      // What JSON leaves out is not there.
      const service = app.service(scopes === undefined ? null : scopes, scopes === undefined ? { scopes } : {});
      for (const path of [`/users/internal/${admin.userId}`, `/users/email/exists?email=${email}`]) {
        const { status, body, headers } = await service.get(path);
        expect([status, body.error.code]).toEqual([403, 'INSUFFICIENT_SCOPE']);
        expect(headers.get('www-authenticate')).toContain('scope="USER_LOOKUP"');
      }
      expect((await service.get('/org')).status).toBe(401);
    },
  );

  it('401: without a secret shared with services, none gets in (SERVICE-14)', async () => {
    const alone = await TestApp.start({ SCOPED_JWT_SECRET: '' });
    const owner = await alone.setUp();
    const { status, body } = await alone.service().get(`/users/internal/${owner.userId}`);
    expect([status, body.error.code]).toEqual([401, 'TOKEN_INVALID']);
    await alone.close();
  });

  it('401: where people’s tokens are HS256 too, neither secret is valid for the other kind (AUTH-28, AUTH-37)', async () => {
    const peoples = 'people-have-another-secret-0815-4711';
    const both = await TestApp.start({ JWT_ALGORITHM: 'HS256', JWT_SECRET: peoples });
    const owner = await both.setUp();
    const route = `/users/internal/${owner.userId}`;
    const claims = { ...claimsOf(owner.credential ?? ''), scopes: ['USER_LOOKUP'] };
    const exp = Math.floor(both.clock.now() / 1_000) + 3_600;
    const byPeoples = compactJwt({ alg: 'HS256' }, { ...claims, exp }, hmac(peoples));
    expect((await both.with(byPeoples).get(route)).status).toBe(401);
    expect((await owner.get(route)).status).toBe(401);
    // A user's claims do not turn a service into a user.
    const service = both.service(['USER_LOOKUP'], claims);
    expect([(await service.get(route)).status, (await service.get('/org')).status]).toEqual([200, 401]);
    expect((await both.service().get(route)).status).toBe(200);
    await both.close();
  });

  it('401: a credential in the query, in a cookie or with another scheme is none (AUTH-1, AUTH-19)', async () => {
    const session = credentials.get('session') ?? '';
    const elsewhere = [
      app.anonymous.get(`/org?access_token=${session}&token=${session}`),
      app.anonymous.get('/org', { headers: { cookie: `token=${session}; session=${session}` } }),
      app.anonymous.get('/org', { headers: { 'x-session-token': session } }),
      app.anonymous.get('/org', { headers: { authorization: session } }),
      app.anonymous.get('/org', { headers: { authorization: `Basic ${session}` } }),
      app.anonymous.get('/org', { headers: { authorization: 'Bearer' } }),
    ];
    for (const response of await Promise.all(elsewhere)) {
      expect(response).toMatchObject({ status: 401, body: { error: { code: 'UNAUTHORIZED' } } });
      expect(response.headers.get('www-authenticate')).toBe('Bearer realm="latchkey"');
    }
  });

  it('401: a session exactly 24 hours after it began (AUTH-12, AUTH-21)', async () => {
    const begunAt = Math.floor(app.clock.now() / 1_000) * 1_000;
    const session = await app.signIn(email);
    app.clock.set(begunAt + 86_400_000 - 1);
    expect((await session.get('/org')).status).toBe(200);
    app.clock.set(begunAt + 86_400_000);
    expect(await session.get('/org')).toMatchObject({
      status: 401,
      body: { message: 'Session expired, please login again', error: { code: 'SESSION_EXPIRED' } },
    });
  });
});
