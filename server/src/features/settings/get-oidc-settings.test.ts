import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Browser, outcomeOf } from '../../../test/support/browser.ts';
import {
  allowOidc,
  callbackUrl,
  clientId,
  clientSecret,
  OidcServer,
  publicUrl,
  RunningClock,
  startUrlOf,
} from '../../../test/support/oidc-server.ts';
import { beginSignIn } from '../../../test/support/sign-in.ts';
import { type Client, TestApp } from '../../../test/support/test-app.ts';

const path = '/settings/oidc';
const ada = { sub: 'ada', email: 'ada@example.com', email_verified: true };

const unstored = { updatedBy: null, updatedAt: null, confirmedBy: null, needsReview: false };

describe('GET /settings/oidc', () => {
  let provider: OidcServer;
  let second: OidcServer;
  let app: TestApp;
  let admin: Client;

  beforeAll(async () => {
    [provider, second] = await Promise.all([OidcServer.start(), OidcServer.start()]);
    app = await TestApp.start(provider.environment, new RunningClock());
    admin = await app.setUp();
    await allowOidc(admin);
  });
  afterAll(async () => {
    await app.close();
    await Promise.all([provider.stop(), second.stop()]);
  });

  const storable = () => ({ issuer: second.issuer, clientId, clientSecret, allowedDomains: ['stored.example'] });
  const reload = async (change: Record<string, string>) => {
    Object.assign(app.environment, change);
    return app.service(['FETCH_CONFIG']).post('/users/updateAppConfig');
  };
  /** Returns the provider that users are sent to; `null` for none. */
  const present = async () => {
    const { location } = await new Browser(app).open(startUrlOf(await beginSignIn(app)));
    return location?.startsWith(publicUrl) ? null : new URL(location ?? '').origin;
  };

  it('200: nothing where nothing is configured but what to register (AUTH-58)', async () => {
    const none = await TestApp.start({ BASE_URL: publicUrl });
    const { status, body } = await (await none.setUp()).get(path);
    expect([status, body]).toEqual([
      200,
      {
        configured: false,
        source: null,
        issuer: null,
        clientId: null,
        hasClientSecret: false,
        allowedDomains: [],
        groupIds: [],
        emailTrust: null,
        redirectUri: callbackUrl,
        note: null,
        ...unstored,
      },
    ]);
    await none.close();
  });

  it('200: what OIDC_* say, without the secret (AUTH-58, AUDIT-5, CONFIG-20)', async () => {
    const { status, body, text } = await admin.get(path);
    expect(status).toBe(200);
    expect(body).toEqual({
      configured: true,
      source: 'configuration',
      issuer: provider.issuer,
      clientId,
      hasClientSecret: true,
      allowedDomains: ['example.com'],
      groupIds: [],
      emailTrust: 'claim',
      redirectUri: callbackUrl,
      note: null,
      ...unstored,
    });
    expect(text).not.toContain(clientSecret);
  });

  it('200: OIDC_* come before what is stored, whole, and the answer says so (CONFIG-20, CONFIG-23)', async () => {
    const { body } = await admin.put(path, storable());
    expect(body).toMatchObject({ source: 'configuration', issuer: provider.issuer, allowedDomains: ['example.com'] });
    expect(body.note).toContain('takes precedence over the stored settings');
    expect(await present()).toBe(provider.issuer);
  });

  it('200: what is stored holds once OIDC_* are gone, and the other way round (CONFIG-23, CONFIG-26)', async () => {
    const none = { OIDC_ISSUER: '', OIDC_CLIENT_ID: '', OIDC_CLIENT_SECRET: '' };
    expect((await reload(none)).status).toBe(200);
    const stored = (await admin.get(path)).body;
    const expected = { source: 'stored', issuer: second.issuer, allowedDomains: ['stored.example'], note: null };
    expect(stored).toMatchObject(expected);
    expect(await present()).toBe(second.issuer);
    expect((await reload(provider.environment)).status).toBe(200);
    expect(await present()).toBe(provider.issuer);
  });

  it('400: a reload with half of OIDC_* changes nothing (CONFIG-20, CONFIG-27)', async () => {
    const { status, text } = await reload({ OIDC_CLIENT_SECRET: '' });
    expect(status).toBe(400);
    expect(text).toContain('OIDC_CLIENT_SECRET');
    expect(text).not.toContain(clientSecret);
    expect(await present()).toBe(provider.issuer);
    await reload(provider.environment);
  });

  it('a reload that changes nothing of it goes unseen by anyone who is at the provider (CONFIG-26)', async () => {
    const browser = new Browser(app);
    const back = await provider.signIn(browser, ada);
    expect((await reload({ LOG_LEVEL: 'debug' })).status).toBe(200);
    expect(outcomeOf((await browser.open(back)).location)).toHaveProperty('oidc');
  });

  it('anyone who is at the provider while it is exchanged begins anew; the code goes to no one else (AUTH-56, CONFIG-26)', async () => {
    const browser = new Browser(app);
    const back = await provider.signIn(browser, ada);
    await reload({ OIDC_ISSUER: second.issuer });
    const asked = second.requests;
    expect(outcomeOf((await browser.open(back)).location)).toEqual({ error: 'expired' });
    expect(second.requests).toBe(asked);
    expect(outcomeOf(await second.walk(app, { ...ada, sub: 'ada there' }))).toHaveProperty('oidc');
    await reload(provider.environment);
  });

  it('anyone who is at the provider while another client is set begins anew (AUTH-56, CONFIG-26)', async () => {
    const browser = new Browser(app);
    const back = await provider.signIn(browser, ada);
    await reload({ OIDC_CLIENT_ID: 'another' });
    expect(outcomeOf((await browser.open(back)).location)).toEqual({ error: 'expired' });
    await reload(provider.environment);
  });

  it('a new secret of the same client holds for anyone who is at the provider already (CONFIG-26)', async () => {
    await reload({ OIDC_CLIENT_SECRET: 'not-the-secret' });
    const browser = new Browser(app);
    const back = await provider.signIn(browser, ada);
    await reload(provider.environment);
    expect(outcomeOf((await browser.open(back)).location)).toHaveProperty('oidc');
    await reload({ OIDC_CLIENT_SECRET: 'not-the-secret' });
    expect(outcomeOf(await provider.walk(app, ada))).toEqual({ error: 'failed' });
    expect(app.logLines.join('\n')).not.toContain('not-the-secret');
    await reload(provider.environment);
  });

  it('403: for a member and for a token without org:admin; 200 with it (AUDIT-4)', async () => {
    const member = await app.member(admin, 'member@example.com');
    expect((await member.get(path)).body.error.code).toBe('ADMIN_REQUIRED');
    expect((await (await admin.token({ scopes: ['org:read'] })).get(path)).status).toBe(403);
    expect((await (await admin.token({ scopes: ['org:admin'] })).get(path)).status).toBe(200);
  });
});
