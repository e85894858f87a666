import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { beginSignIn, claimsOf } from './sign-in.ts';
import { type Client, password, TestApp } from './test-app.ts';

const email = 'ada@example.com';
const kinds = ['session', 'token with prefix', 'token without prefix', 'refresh token', 'x-session-token'] as const;
type Kind = (typeof kinds)[number];

describe('a credential of one kind where another belongs', () => {
  let app: TestApp;
  let admin: Client;
  const credentials = new Map<Kind, string>();
  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    const { body: pair } = await app.signInTokens(email);
    const { credential } = await admin.token({ expiryDays: 'never' });
    credentials.set('session', pair.accessToken);
    credentials.set('token with prefix', credential ?? '');
    credentials.set('token without prefix', (credential ?? '').replace('lkpat_', ''));
    credentials.set('refresh token', pair.refreshToken);
    credentials.set('x-session-token', await beginSignIn(app, email));
  });
  afterAll(() => app.close());

  const doors: readonly { name: string; open: readonly Kind[]; knock: (value: string) => Promise<number> }[] = [
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
      name: 'the header x-session-token',
      open: ['x-session-token'],
      knock: async (value) => {
        const body = { method: 'password', credentials: { password }, email };
        return (await app.nobody.post('/userAccount/authenticate', body, { headers: { 'x-session-token': value } }))
          .status;
      },
    },
  ];
  for (const { name, open, knock } of doors) {
    for (const kind of kinds) {
      const expected = open.includes(kind) ? 200 : 401;
      it(`${expected}: ${kind} at ${name} (AUTH-28, AUTH-33)`, async () => {
        expect(await knock(credentials.get(kind) ?? '')).toBe(expected);
      });
    }
  }

  it('401: claims that call it another kind, signed by the service itself (AUTH-26, AUTH-28)', async () => {
    const { keys } = app.services;
    const claims = claimsOf(credentials.get('session') ?? '');
    for (const tokenType of ['session', 'oauth', 'refresh', 'sign-in']) {
      const forged = await keys.sign({ ...claims, jti: 'f'.repeat(24), tokenType });
      expect((await app.with(forged).get('/org')).status).toBe(401);
      expect((await app.with(forged).post('/userAccount/refresh/token')).status).toBe(401);
    }
  });

  it('401: a credential in the query, in a cookie or with another scheme is none (AUTH-1, AUTH-19)', async () => {
    const session = credentials.get('session') ?? '';
    const elsewhere = [
      app.nobody.get(`/org?access_token=${session}&token=${session}`),
      app.nobody.get('/org', { headers: { cookie: `token=${session}; session=${session}` } }),
      app.nobody.get('/org', { headers: { 'x-session-token': session } }),
      app.nobody.get('/org', { headers: { authorization: session } }),
      app.nobody.get('/org', { headers: { authorization: `Basic ${session}` } }),
      app.nobody.get('/org', { headers: { authorization: 'Bearer' } }),
    ];
    for (const answer of await Promise.all(elsewhere)) {
      expect(answer).toMatchObject({ status: 401, body: { error: { code: 'UNAUTHORIZED' } } });
      expect(answer.headers.get('www-authenticate')).toBe('Bearer realm="latchkey"');
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
