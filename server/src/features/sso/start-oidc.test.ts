import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Browser, outcomeOf } from '../../../test/support/browser.ts';
import {
  allowOidc,
  callbackUrl,
  clientId,
  clientSecret,
  OidcServer,
  publicUrl,
  publicUrlBelow,
  RunningClock,
  showTicket,
} from '../../../test/support/oidc-server.ts';
import { storedRows } from '../../../test/support/second-connection.ts';
import { type Json, password, TestApp } from '../../../test/support/test-app.ts';

const signInId = '65f0c0ffee65f0c0ffee65f0';
const route = '/api/v1/userAccount/oidc/start';
const path = `${route}?signIn=${signInId}`;

describe('GET /userAccount/oidc/start', () => {
  let provider: OidcServer;
  let app: TestApp;

  beforeAll(async () => {
    provider = await OidcServer.start();
    const environment = { ...provider.environment, FRONTEND_URL: 'https://front.example.com/app' };
    app = await TestApp.start(environment, new RunningClock());
    await allowOidc(await app.setUp());
  });
  afterAll(async () => {
    await app.close();
    await provider.stop();
  });

  const start = (to = app) => fetch(to.url + path, { redirect: 'manual' });

  it('302: leads to the provider with PKCE, state and nonce (AUTH-48, AUTH-56)', async () => {
    const { status, headers } = await start();
    expect([status, headers.get('cache-control')]).toEqual([302, 'no-store']);
    const address = new URL(headers.get('location') ?? '');
    expect(address.origin).toBe(provider.issuer);
    expect(Object.fromEntries(address.searchParams)).toEqual({
      client_id: clientId,
      code_challenge: expect.stringMatching(/^[\w-]{43}$/),
      code_challenge_method: 'S256',
      nonce: expect.stringMatching(/^[\w-]{43}$/),
      redirect_uri: callbackUrl,
      response_type: 'code',
      scope: 'openid email profile',
      state: expect.stringMatching(/^[\w-]{43}$/),
    });
  });

  it('302: what has to be remembered is in a cookie that no script reads and no other page sends (AUTH-56)', async () => {
    const [line, ...more] = (await start()).headers.getSetCookie();
    expect(more).toEqual([]);
    const [pair, ...attributes] = (line ?? '').split('; ');
    expect(pair).toMatch(/^latchkey_oidc=eyJ[\w.-]+$/);
    const kept = ['Path=/api/v1/userAccount/oidc', 'Max-Age=600', 'HttpOnly', 'SameSite=Lax', 'Secure'];
    expect(attributes.toSorted()).toEqual(kept.toSorted());
  });

  it('302: the cookie goes over plain HTTP only where the public address is plain HTTP (AUTH-56)', async () => {
    const plain = await TestApp.start({ ...provider.environment, BASE_URL: 'http://keys.example.com' });
    const { headers } = await start(plain);
    expect(headers.get('set-cookie')).toContain('; HttpOnly; SameSite=Lax');
    expect(headers.get('set-cookie')).not.toContain('Secure');
    expect(headers.get('location')).toContain(encodeURIComponent('http://keys.example.com/api/'));
    await plain.close();
  });

  it('302: below a path the cookie has that path, and comes back with the browser (FIT-9)', async () => {
    const below = await TestApp.start({ ...provider.environment, BASE_URL: publicUrlBelow }, new RunningClock());
    await allowOidc(await below.setUp());
    const { headers } = await start(below);
    expect(headers.get('set-cookie')).toContain('; Path=/id/api/v1/userAccount/oidc;');
    const page = await provider.walk(below, { sub: 'ada', email: 'ada@example.com', email_verified: true });
    expect(page).toMatch(`${publicUrlBelow}/sign-in#oidc=`);
    expect((await showTicket(below, outcomeOf(page))).status).toBe(200);
    await below.close();
  });

  it('302: no one can make up what is remembered, and the secret is not in it (AUTH-56)', async () => {
    const { headers } = await start();
    const sealed = headers.get('set-cookie')?.match(/=([^;]+)/)?.[1] ?? '';
    const [header, claims] = sealed.split('.').map((part) => Buffer.from(part, 'base64url').toString());
    expect(JSON.parse(header ?? '')).toEqual({ alg: 'HS256', typ: 'sealed+jwt' });
    expect(JSON.parse(claims ?? '')).toMatchObject({ signInId });
    expect(claims).not.toContain(clientSecret);
    expect(app.logLines.join('\n')).not.toContain(sealed);
  });

  it('302: each start is another, and none leaves anything in the store (AUTH-56)', async () => {
    const before = storedRows(app);
    const responses = await Promise.all(Array.from({ length: 10 }, () => start()));
    const seen = responses.map(({ headers }) => new URL(headers.get('location') ?? '').searchParams);
    for (const name of ['state', 'nonce', 'code_challenge']) {
      expect(new Set(seen.map((given) => given.get(name))).size).toBe(10);
    }
    expect(storedRows(app)).toEqual(before);
  });

  it.each([
    ['Host', { host: 'evil.example.com' }],
    ['X-Forwarded-Host', { 'x-forwarded-host': 'evil.example.com', 'x-forwarded-proto': 'http' }],
    ['Forwarded', { forwarded: 'host=evil.example.com;proto=http' }],
    ['Referer and Origin', { referer: 'https://evil.example.com/', origin: 'https://evil.example.com' }],
  ])('302: leads back to where configuration says, whatever %s says', async (_, headers) => {
    // A request that may say any Host, which fetch does not let through.
    const [response] = (await once(get(app.url + path, { headers }), 'response')) as [IncomingMessage];
    response.resume();
    expect(new URL(response.headers.location ?? '').searchParams.get('redirect_uri')).toBe(callbackUrl);
    expect(response.headers['set-cookie']?.[0]).toContain('Secure');
  });

  it('302: for the sign-in named in capitals as well (AUTH-56, HTTP-19)', async () => {
    const { status, headers } = await fetch(`${app.url}${route}?signIn=${signInId.toUpperCase()}`, {
      redirect: 'manual',
    });
    const claims = headers.get('set-cookie')?.split('.')[1] ?? '';
    expect([status, JSON.parse(Buffer.from(claims, 'base64url').toString()).signInId]).toEqual([302, signInId]);
  });

  it.each([
    ['none', ''],
    ['an empty one', '?signIn='],
    ['one digit too few', `?signIn=${signInId.slice(1)}`],
    ['one digit too many', `?signIn=${signInId}0`],
    ['no hexadecimal digits', `?signIn=${'g'.repeat(24)}`],
    ['a line break behind', `?signIn=${signInId}%0a`],
    ['two', `?signIn=${signInId}&signIn=${signInId}`],
    ['a field in it', `?signIn[id]=${signInId}`],
    ['another name', `?signin=${signInId}`],
  ])('400: for %s instead of a sign-in; no one is sent anywhere (AUTH-56, HTTP-19)', async (_, query) => {
    const asked = provider.requests;
    const response = await fetch(app.url + route + query, { redirect: 'manual' });
    const { error } = (await response.json()) as Json;
    expect([response.status, error.code, response.headers.get('location')]).toEqual([400, 'VALIDATION_ERROR', null]);
    expect(JSON.stringify(error)).toContain('query.signIn');
    expect(response.headers.get('set-cookie')).toBeNull();
    expect(provider.requests).toBe(asked);
  });

  it('302: nothing else in the query changes anything (AUTH-56)', async () => {
    const query = '&redirect_uri=https://evil.example.com&state=mine&nonce=mine&next=//evil.example.com';
    const response = await fetch(app.url + path + query, { redirect: 'manual' });
    expect(response.headers.get('location')).not.toMatch(/evil|mine/);
  });

  it('302 to the sign-in page where no provider is configured (AUTH-56)', async () => {
    const none = await TestApp.start({ BASE_URL: publicUrl });
    const { status, headers } = await start(none);
    expect([status, headers.get('location')]).toEqual([302, `${publicUrl}/sign-in#error=not_configured`]);
    expect(headers.get('set-cookie')).toBeNull();
    await none.close();
  });

  it('302 to the sign-in page while the provider is down, and everything else goes on (AUTH-48, AUTH-56)', async () => {
    const alone = await OidcServer.start();
    const cut = await TestApp.start({ ...provider.environment, OIDC_ISSUER: alone.issuer });
    await cut.setUp();
    await alone.stop();
    const { status, headers } = await start(cut);
    expect([status, headers.get('location')]).toEqual([302, `${publicUrl}/sign-in#error=failed`]);
    expect((await cut.anonymous.post('/userAccount/initAuth', { email: 'ada@example.com' })).status).toBe(200);
    expect((await cut.signInTokens('ada@example.com', password)).status).toBe(200);
    const warning = cut.logLines.find((line) => line.includes('the provider of single sign-on failed'));
    expect(JSON.parse(warning ?? '{}')).toMatchObject({ level: 40, requestId: headers.get('x-request-id') });
    expect((await cut.services.metrics.expose()).text).toMatch(/oidcFailed"\} 1/);
    await alone.listen();
    expect((await start(cut)).headers.get('location')).toContain(alone.issuer);
    await cut.close();
    await alone.stop();
  });

  it('302: the sign-in page is where FRONTEND_URL says', async () => {
    const location = await provider.walk(app, { sub: 'nobody', email: 'x@elsewhere.example', email_verified: true });
    expect(location).toBe('https://front.example.com/app/sign-in#error=no_account');
    expect(outcomeOf(location)).toEqual({ error: 'no_account' });
  });

  it('429: for who starts more than 300 times a minute (AUTH-56)', async () => {
    const limited = await TestApp.start({ ...provider.environment, RATE_LIMIT: 'on' });
    const browser = new Browser(limited);
    const open = () => browser.open(`${publicUrl}${path}`);
    const statuses: number[] = [];
    for (let count = 0; count < 301; count += 1) statuses.push((await open()).status);
    expect([statuses.indexOf(429), statuses.at(-1)]).toEqual([300, 429]);
    expect((await open()).headers.get('retry-after')).toMatch(/^\d+$/);
    const back = await browser.open(`${callbackUrl}?error=access_denied`);
    expect([back.status, back.location]).toEqual([429, null]);
    limited.clock.advance(60_000);
    expect((await open()).status).toBe(302);
    await limited.close();
  });
});
