import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Browser, outcomeOf } from '../../../test/support/browser.ts';
import { HandmadeProvider, says } from '../../../test/support/handmade-provider.ts';
import {
  allowOidc,
  callbackUrl,
  clientSecret,
  OidcServer,
  publicUrl,
  RunningClock,
  showTicket,
} from '../../../test/support/oidc-server.ts';
import { storedRows } from '../../../test/support/second-connection.ts';
import { beginSignIn } from '../../../test/support/sign-in.ts';
import { type Client, TestApp } from '../../../test/support/test-app.ts';

const ada = { sub: 'ada', email: 'ada@example.com', email_verified: true, name: 'Ada' };
const startUrl = `${publicUrl}/api/v1/userAccount/oidc/start?signIn=65f0c0ffee65f0c0ffee65f0`;

describe('GET /userAccount/oidc/callback', () => {
  const clock = new RunningClock();
  let provider: OidcServer;
  let app: TestApp;
  let admin: Client;

  beforeAll(async () => {
    provider = await OidcServer.start();
    app = await TestApp.start(provider.environment, clock);
    admin = await app.setUp();
    await allowOidc(admin);
  });
  afterAll(async () => {
    await app.close();
    await provider.stop();
  });

  const cookieOf = (browser: Browser) => browser.cookiesFor(callbackUrl);
  const come = (address: string, cookie: string) =>
    fetch(address.replace(publicUrl, app.url), { redirect: 'manual', headers: cookie === '' ? {} : { cookie } });
  const outcome = async (address: string, cookie: string) =>
    outcomeOf((await come(address, cookie)).headers.get('location'));

  it('302: leads to the sign-in page with a ticket, which signs in, and forgets the cookie (AUTH-48, AUTH-56)', async () => {
    const browser = new Browser(app);
    const back = await provider.signIn(browser, ada);
    expect(back).toMatch(`${callbackUrl}?`);
    expect(cookieOf(browser)).toContain('latchkey_oidc=');
    const { status, location, headers, text } = await browser.open(back);
    expect([status, text, headers.get('cache-control')]).toEqual([302, '', 'no-store']);
    expect(location).toMatch(/^https:\/\/keys\.example\.com\/sign-in#oidc=lkt_[\w-]{43}&email=ada%40example\.com$/);
    expect(headers.get('set-cookie')).toBe(
      'latchkey_oidc=; Path=/api/v1/userAccount/oidc; Max-Age=0; HttpOnly; SameSite=Lax; Secure',
    );
    expect(cookieOf(browser)).toBe('');
    const { status: signedIn, body } = await showTicket(app, outcomeOf(location));
    expect([signedIn, body.message]).toEqual([200, 'Fully authenticated']);
    expect((await app.with(body.accessToken).get(`/users/${admin.userId}`)).body.email).toBe('ada@example.com');
  });

  it('302: the code counts once (AUTH-56)', async () => {
    const browser = new Browser(app);
    const back = await provider.signIn(browser, ada);
    const cookie = cookieOf(browser);
    expect(await outcome(back, cookie)).toMatchObject({ oidc: expect.any(String) });
    expect(await outcome(back, cookie)).toEqual({ error: 'failed' });
  });

  it('302 with access_denied for who says no at the provider (AUTH-56)', async () => {
    const browser = new Browser(app);
    const page = await provider.walk(app, ada, { denies: true, browser });
    expect(page).toBe(`${publicUrl}/sign-in#error=access_denied`);
    expect(cookieOf(browser)).toBe('');
  });

  it('302 with expired for a browser that was not sent there (AUTH-56)', async () => {
    const back = await provider.signIn(new Browser(app), ada);
    expect(await outcome(back, '')).toEqual({ error: 'expired' });
    const other = new Browser(app);
    await other.open(startUrl);
    expect(await outcome(back, cookieOf(other))).toEqual({ error: 'expired' });
    expect(await outcome(back, 'a=b; c')).toEqual({ error: 'expired' });
  });

  it('302: of two tabs the one that was sent there last gets a ticket, whatever comes back first (AUTH-56)', async () => {
    const browser = new Browser(app);
    const [first, second] = [await provider.signIn(browser, ada), await provider.signIn(browser, ada)];
    expect(outcomeOf((await browser.open(first)).location)).toEqual({ error: 'expired' });
    await browser.open(`${callbackUrl}?error=access_denied`);
    expect(outcomeOf((await browser.open(second)).location)).toHaveProperty('oidc');
  });

  it('302 with expired for a state that is wrong, missing or there twice; the provider is not asked (AUTH-56)', async () => {
    const browser = new Browser(app);
    const back = new URL(await provider.signIn(browser, ada));
    const cookie = cookieOf(browser);
    const state = back.searchParams.get('state') ?? '';
    const askedBefore = provider.requests;
    for (const states of [['x'], [''], [], [state, state], [state, 'x'], [`${state} `], [state.toUpperCase()]]) {
      back.searchParams.delete('state');
      for (const one of states) back.searchParams.append('state', one);
      expect(await outcome(back.href, cookie)).toEqual({ error: 'expired' });
    }
    expect(provider.requests).toBe(askedBefore);
  });

  it('302 with expired after ten minutes at the provider, not before (AUTH-56)', async () => {
    const slow = new Browser(app);
    const late = await provider.signIn(slow, ada);
    const cookie = cookieOf(slow);
    clock.advance(570_000);
    expect(await outcome(late.replace(/code=[^&]+/, 'code=x'), cookie)).toEqual({ error: 'failed' });
    clock.advance(30_000);
    expect(await outcome(late, cookie)).toEqual({ error: 'expired' });
    clock.advance(-600_000);
  });

  it('302 with expired for a cookie that is bent, made up or sealed for something else (AUTH-28, AUTH-56)', async () => {
    const browser = new Browser(app);
    const back = await provider.signIn(browser, ada);
    const good = cookieOf(browser).split('=')[1] ?? '';
    const [header, claims, signature] = good.split('.');
    const unsigned = Buffer.from('{"alg":"none","typ":"sealed+jwt"}').toString('base64url');
    const { credential } = admin;
    const refreshToken = (await app.signInTokens('ada@example.com')).body.refreshToken;
    const bad = [
      `${header}.${claims}.${signature?.slice(0, -2)}AA`,
      `${unsigned}.${claims}.`,
      'x',
      '""',
      credential,
      refreshToken,
      await beginSignIn(app),
    ];
    for (const value of bad) expect(await outcome(back, `latchkey_oidc=${value}`)).toEqual({ error: 'expired' });
    expect(await outcome(back, `xlatchkey_oidc=x; latchkey_oidc=${good}; latchkey_oidc=x`)).toHaveProperty('oidc');
  });

  it('401: what the browser keeps is no x-session-token and no ticket (AUTH-28)', async () => {
    const browser = new Browser(app);
    await browser.open(startUrl);
    const sealed = cookieOf(browser).split('=')[1] ?? '';
    const ticket = { oidc: 'x', email: 'ada@example.com' };
    expect((await showTicket(app, ticket, sealed)).status).toBe(401);
    expect((await app.with(sealed).get('/org')).status).toBe(401);
    expect((await app.with(sealed).post('/userAccount/refresh/token')).status).toBe(401);
  });

  it.each([
    ['an error of the provider', { error: 'server_error', error_description: 'x' }],
    ['no code', {}],
    ['a code that it did not give', { code: 'made-up' }],
    ['an answer of another issuer', { code: 'x', iss: 'https://other.example.com' }],
  ])('302 with failed for %s (AUTH-56)', async (_, query) => {
    const browser = new Browser(app);
    const { location } = await browser.open(startUrl);
    const state = new URL(location ?? '').searchParams.get('state') ?? '';
    const back = `${callbackUrl}?${new URLSearchParams({ iss: provider.issuer, ...query, state }).toString()}`;
    expect((await browser.open(back)).location).toBe(`${publicUrl}/sign-in#error=failed`);
  });

  it('302: leads to where configuration says, whatever the request says (AUTH-56)', async () => {
    const query =
      'error=access_denied&redirect_uri=https://evil.example.com&next=//evil.example.com&state=https://evil';
    const { headers } = await fetch(`${app.url}/api/v1/userAccount/oidc/callback?${query}`, {
      redirect: 'manual',
      headers: { 'x-forwarded-host': 'evil.example.com', forwarded: 'host=evil.example.com', referer: 'https://evil/' },
    });
    expect(headers.get('location')).toBe(`${publicUrl}/sign-in#error=access_denied`);
    const odd = await fetch(`${app.url}/api/v1/userAccount/oidc/callback?error=%0d%0aset-cookie:x%23oidc=y`, {
      redirect: 'manual',
    });
    expect(odd.headers.get('location')).toBe(`${publicUrl}/sign-in#error=expired`);
  });

  it('302: only known words come out of the request (AUTH-56)', async () => {
    const browser = new Browser(app);
    const { location } = await browser.open(startUrl);
    const state = new URL(location ?? '').searchParams.get('state') ?? '';
    const back = `${callbackUrl}?${new URLSearchParams({ error: 'no_account&oidc=x', state }).toString()}`;
    expect((await browser.open(back)).location).toBe(`${publicUrl}/sign-in#error=failed`);
  });

  it('302 with not_configured where no provider is (AUTH-56)', async () => {
    const none = await TestApp.start({ BASE_URL: publicUrl });
    const { location } = await new Browser(none).open(`${callbackUrl}?code=x&state=y`);
    expect(location).toBe(`${publicUrl}/sign-in#error=not_configured`);
    await none.close();
  });

  it('302 with no_account where no organization is (AUTH-48)', async () => {
    const empty = await TestApp.start(provider.environment, new RunningClock());
    expect(await provider.walk(empty, ada)).toBe(`${publicUrl}/sign-in#error=no_account`);
    await empty.close();
  });

  it('302 with no_account once the organization is deleted (AUTH-48)', async () => {
    const gone = await TestApp.start(provider.environment, new RunningClock());
    await gone.setUp();
    await gone.deleteOrganization();
    expect(await provider.walk(gone, ada)).toBe(`${publicUrl}/sign-in#error=no_account`);
    await gone.close();
  });

  it('302 with failed while the provider is down; then it goes on (AUTH-56)', async () => {
    const alone = await OidcServer.start();
    const cut = await TestApp.start({ ...provider.environment, OIDC_ISSUER: alone.issuer }, new RunningClock());
    const cutAdmin = await cut.setUp();
    await allowOidc(cutAdmin);
    const browser = new Browser(cut);
    const back = await alone.signIn(browser, ada);
    await alone.stop();
    expect((await browser.open(back)).location).toBe(`${publicUrl}/sign-in#error=failed`);
    const begun = await cut.anonymous.post('/userAccount/initAuth', { email: 'ada@example.com' });
    expect([begun.status, begun.body.allowedMethods]).toEqual([200, ['password', 'oidc']]);
    expect((await cut.signInTokens('ada@example.com')).status).toBe(200);
    await alone.listen();
    expect(outcomeOf(await alone.walk(cut, ada))).toHaveProperty('oidc');
    await cut.close();
    await alone.stop();
  });

  it.each([
    ['forged', { isForged: true }],
    ['meant for somebody else', { claims: { aud: 'else' } }],
    ['of another sign-in', { claims: { nonce: 'another' } }],
    ['expired', { claims: { exp: 1 } }],
    ['missing', { idToken: () => undefined }],
    ['behind an error', { at: { token: says(500, '{}') } }],
  ])('302 with failed, and nothing is written, where the ID token is %s (AUTH-48, AUTH-56)', async (_, faults) => {
    const bad = await HandmadeProvider.start(() => clock.now());
    const environment = { ...provider.environment, OIDC_ISSUER: bad.issuer };
    const victim = await TestApp.start(environment, clock);
    await allowOidc(await victim.setUp());
    const browser = new Browser(victim);
    const comeBack = async () => {
      const { location } = await browser.open(startUrl);
      const asked = new URL(location ?? '').searchParams;
      bad.nonce = asked.get('nonce') ?? '';
      return browser.open(`${callbackUrl}?code=x&state=${asked.get('state')}`);
    };
    expect(outcomeOf((await comeBack()).location)).toHaveProperty('oidc');
    const before = storedRows(victim);
    bad.faults = faults;
    expect((await comeBack()).location).toBe(`${publicUrl}/sign-in#error=failed`);
    expect(storedRows(victim)).toEqual(before);
    await victim.close();
    await bad.stop();
  });

  it('writes no code, ticket, cookie or secret to log or store (AUDIT-6)', async () => {
    const browser = new Browser(app);
    const back = await provider.signIn(browser, ada);
    const code = new URL(back).searchParams.get('code') ?? 'no code';
    const cookie = cookieOf(browser).split('=')[1] ?? 'no cookie';
    const { location } = await browser.open(back);
    const { oidc = 'no ticket' } = outcomeOf(location);
    await showTicket(app, outcomeOf(location));
    const written = app.logLines.join('\n') + JSON.stringify(storedRows(app));
    for (const secret of [code, cookie, oidc, clientSecret]) expect(written).not.toContain(secret);
  });
});
