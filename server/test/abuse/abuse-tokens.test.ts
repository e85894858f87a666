import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { StartupError } from '../../src/base/errors.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { forgeries, serviceKey } from '../support/forgeries.ts';
import { bareJwt, claimsOf, compactJwt, hmac } from '../support/jwt.ts';
import { type Client, password, TestApp, type TokenClient } from '../support/test-app.ts';

const email = 'ada@example.com';
const sharedSecret = 'kM3vX8qLz1RtY6wB0nHs4GjP7dFuC2eA';
const otherSecret = 'Zq9Ty2Wm5Xk8Nb1Vc4Jh7Rf0Lg3Ds6Pa';

let app: TestApp;
let admin: Client;
let token: TokenClient;
/** Token of a sign-in, and values in the two other places for credentials. */
let signInToken: string;
let refreshToken: string;

beforeAll(async () => {
  app = await TestApp.start();
  admin = await app.setUp();
  token = await admin.token();
  signInToken = (await app.anonymous.post('/userAccount/initAuth', { email })).headers.get('x-session-token') ?? '';
  refreshToken = (await app.signInTokens(email)).body.refreshToken;
});
afterAll(() => app.close());

/** The answers to a credential at each of the places that take one: a user's route, refresh, and sign-in. */
async function present(credential: string) {
  const caller = app.with(credential);
  const signIn = { method: 'password', credentials: { password }, email };
  const [user, refresh, start] = await Promise.all([
    caller.get('/org'),
    caller.post('/userAccount/refresh/token'),
    app.anonymous.post('/userAccount/authenticate', signIn, { headers: { 'x-session-token': credential } }),
  ]);
  return { user, refresh, start };
}

const statuses = ({ user, refresh, start }: Awaited<ReturnType<typeof present>>) => [
  user.status,
  refresh.status,
  start.status,
];

describe('T1, T2: forged signatures', () => {
  let connections = 0;
  const trap = createServer((_, response) => response.end('{}')).on('connection', () => {
    connections += 1;
  });
  let trapUrl: string;

  beforeAll(async () => {
    await new Promise<void>((resolve) => {
      trap.listen(0, '127.0.0.1', resolve);
    });
    trapUrl = `http://127.0.0.1:${(trap.address() as AddressInfo).port}/keys.json`;
  });
  afterAll(() => void trap.close());

  it.each([
    ['a personal access token', () => bareJwt(token.credential ?? '')],
    ['a session', () => admin.credential ?? ''],
    ['a refresh token', () => refreshToken],
    ['the token of a sign-in begun', () => signInToken],
  ])('401: %s in every forged form, at every place that takes a credential (AUTH-20, AUTH-26)', async (_, original) => {
    const all = await forgeries(app, claimsOf(original()), { good: original(), trapUrl });
    expect(all.length).toBeGreaterThan(55);
    const accepted: string[] = [];
    for (const { name, token: forged } of all) {
      if (statuses(await present(forged)).join() !== '401,401,401') accepted.push(name);
    }
    expect(accepted).toEqual([]);
    expect(connections).toBe(0);
  });

  it('401: what our own key signed but the store does not know; only a sign-in lives on its signature (AUTH-25, AUTH-26)', async () => {
    const { sign, kid } = await serviceKey(app);
    const header = { alg: 'EdDSA', typ: 'JWT', kid };
    for (const original of [token.credential ?? '', admin.credential ?? '', refreshToken]) {
      const again = compactJwt(header, { ...claimsOf(original), jti: 'f'.repeat(24) }, sign);
      const responses = await present(again);
      expect(statuses(responses)).toEqual([401, 401, 401]);
      expect(responses.user.body.error.code).toBe('TOKEN_INVALID');
      expect(responses.user.headers.get('www-authenticate')).toMatch(/^Bearer .*error="invalid_token"/);
    }
  });

  it('401: guessed secrets where tokens are signed with a shared one (AUTH-37)', async () => {
    const shared = await TestApp.start({ JWT_ALGORITHM: 'HS256', JWT_SECRET: sharedSecret });
    const client = await shared.setUp();
    const claims = claimsOf(client.credential ?? '');
    const signIn = { ...claims, tokenType: 'sign-in', email };
    for (const key of [
      '',
      new Uint8Array(32),
      'secret',
      'undefined',
      `${sharedSecret}\n`,
      sharedSecret.toLowerCase(),
    ]) {
      const forged = compactJwt({ alg: 'HS256', typ: 'JWT' }, { ...claims, admin: true }, hmac(key));
      expect((await shared.with(forged).get('/org')).status).toBe(401);
      const headers = { 'x-session-token': compactJwt({ alg: 'HS256', typ: 'JWT' }, signIn, hmac(key)) };
      const body = { method: 'password', credentials: { password }, email };
      expect((await shared.anonymous.post('/userAccount/authenticate', body, { headers })).status).toBe(401);
    }
    const signedRight = compactJwt({ alg: 'HS256' }, { ...claims, jti: 'x' }, hmac(sharedSecret));
    expect((await shared.with(signedRight).get('/org')).status).toBe(401);
    await shared.close();
  });
});

describe('T2: secrets at start-up', () => {
  const start = (secret: string, more = {}) => loadConfig({ JWT_ALGORITHM: 'HS256', JWT_SECRET: secret, ...more });

  it.each([
    ['an empty one', ''],
    ['a short one', 'kM3vX8qLz1RtY6wB'],
    ['one byte too few', sharedSecret.slice(1)],
    ['zeros', '0'.repeat(64)],
    ['a few characters again and again', 'abcabc'.repeat(10)],
    ['the word secret', 'secret'],
    ['a placeholder', 'change-me-please-0123456789abcdefghij'],
    ['another placeholder', 'your_secret_key_here_0123456789abcdef'],
  ])('refuses %s in one line that names the variable and never holds it (AUTH-39, CONFIG-24)', (_, secret) => {
    const problem = (() => {
      try {
        start(secret);
        return null;
      } catch (error) {
        return error;
      }
    })();
    expect(problem).toBeInstanceOf(StartupError);
    const message = problem instanceof Error ? problem.message : '';
    expect(message).toMatch(/^JWT_SECRET is .+$/);
    expect(message).not.toContain(secret.length > 'secret'.length ? secret : 'nothing to hide');
  });

  it('refuses one secret for two purposes, and takes two good ones (AUTH-39)', () => {
    expect(() => start(sharedSecret, { SCOPED_JWT_SECRET: sharedSecret })).toThrow(/must differ$/);
    expect(start(sharedSecret, { SCOPED_JWT_SECRET: otherSecret }).jwtSharedSecret?.expose()).toBe(sharedSecret);
  });

  it('refuses HS256 without any secret (CONFIG-5)', () => {
    expect(() => loadConfig({ JWT_ALGORITHM: 'HS256' })).toThrow(StartupError);
    expect(() => loadConfig({ JWT_ALGORITHM: 'none' })).toThrow(/JWT_ALGORITHM is "none": it must be EdDSA or HS256/);
  });
});

describe('T3: each credential where another belongs', () => {
  it.each([
    ['a session', () => admin.credential ?? '', [200, 401, 401]],
    ['a personal access token', () => token.credential ?? '', [200, 401, 401]],
    ['a personal access token without prefix', () => bareJwt(token.credential ?? ''), [200, 401, 401]],
    ['the token of a sign-in begun', () => signInToken, [401, 401, 200]],
    ['a password', () => password, [401, 401, 401]],
    ['a token’s id', () => token.tokenId, [401, 401, 401]],
    ['a user’s id', () => admin.userId, [401, 401, 401]],
  ])('401: %s anywhere but at its own place (AUTH-28, AUTH-33)', async (_, credential, expected) => {
    expect(statuses(await present(credential()))).toEqual(expected);
  });

  it('401: a refresh token anywhere but at refresh, also when it was exchanged (AUTH-28)', async () => {
    expect(statuses(await present(refreshToken))).toEqual([401, 200, 401]);
    expect((await app.with(refreshToken).get('/org')).status).toBe(401);
  });

  it('401: what is stored of a token is no token (AUTH-25, STORE-8)', async () => {
    const rows = await app.services.db.read.selectFrom('personal_access_tokens').select('hash').execute();
    expect(rows.length).toBeGreaterThan(0);
    for (const { hash } of rows) expect(statuses(await present(hash))).toEqual([401, 401, 401]);
  });

  it('403: a personal access token at a session’s own routes (AUTH-32)', async () => {
    const { status, body } = await token.post('/userAccount/logout/manual');
    expect([status, body.error.code]).toEqual([403, 'FORBIDDEN']);
    expect((await admin.get('/org')).status).toBe(200);
  });
});

describe('T5: values that differ and decode alike', () => {
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

  function variantsOf(jwt: string): string[] {
    const [header = '', claims = '', signature = ''] = jwt.split('.');
    const last = alphabet.indexOf(signature.at(-1) ?? '');
    // Of the last character only the upper two bits belong to the 64 bytes of the signature.
    const spare = alphabet.split('').filter((_, place) => place >> 4 === last >> 4 && place !== last);
    const spaced = Buffer.from(JSON.stringify(JSON.parse(Buffer.from(header, 'base64url').toString()), null, 1));
    return [
      ...spare.map((character) => jwt.slice(0, -1) + character),
      `${jwt}=`,
      `${jwt}==`,
      `${jwt}.`,
      `${jwt}.${signature}`,
      `.${jwt}`,
      `${header}.${claims}`,
      `${header}.${claims}.`,
      `${header}..${signature}`,
      `${header}=.${claims}=.${signature}=`,
      `${spaced.toString('base64url')}.${claims}.${signature}`,
      `${header}.${claims}.${signature.replaceAll('-', '+').replaceAll('_', '/')}+`,
      `${header}.${claims}.%${signature}`,
      jwt.toUpperCase(),
      jwt.toLowerCase(),
      `"${jwt}"`,
      `${jwt}\u00a0`,
    ];
  }

  it('401: every variant of a token and of a session; the store knows only the exact value (AUTH-20, AUTH-25)', async () => {
    for (const original of [bareJwt(token.credential ?? ''), admin.credential ?? '']) {
      const variants = variantsOf(original);
      expect(new Set(variants).size).toBe(variants.length);
      expect(variants.length).toBeGreaterThan(30);
      const responses = await Promise.all(variants.map((variant) => app.with(variant).get('/org')));
      expect(responses.map(({ status }) => status)).toEqual(variants.map(() => 401));
      expect((await app.with(original).get('/org')).status).toBe(200);
    }
  });
});
