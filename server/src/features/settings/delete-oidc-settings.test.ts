import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Browser, outcomeOf } from '../../../test/support/browser.ts';
import {
  allowOidc,
  clientId,
  clientSecret,
  OidcServer,
  proveOidc,
  publicUrl,
  RunningClock,
} from '../../../test/support/oidc-server.ts';
import { type Client, TestApp } from '../../../test/support/test-app.ts';

const path = '/settings/oidc';
const smtp = { host: '127.0.0.1', port: 25, security: 'none', from: 'a@example.com' };

describe('DELETE /settings/oidc', () => {
  let provider: OidcServer;
  let app: TestApp;
  let admin: Client;

  beforeEach(async () => {
    provider = await OidcServer.start();
    app = await TestApp.start({ BASE_URL: publicUrl }, new RunningClock());
    admin = await app.setUp();
    await admin.put(path, { issuer: provider.issuer, clientId, clientSecret });
  });
  afterEach(async () => {
    await app.close();
    await provider.stop();
  });

  const configured = async () => (await admin.get(path)).body.configured;

  it('200: forgets what is stored, for anyone who is at the provider too, and 404 once it is gone (AUTH-48, AUDIT-4)', async () => {
    await allowOidc(admin);
    const browser = new Browser(app);
    const back = await provider.signIn(browser, { sub: 'ada', email: 'ada@example.com', email_verified: true });
    const { status, body } = await admin.delete(path);
    expect([status, body.message]).toEqual([200, 'Single sign-on settings removed successfully']);
    expect(await configured()).toBe(false);
    expect((await app.audit()).at(-1)).toMatchObject({
      action: 'settings.oidc-removed',
      actor_user_id: admin.userId,
    });
    expect(outcomeOf((await browser.open(back)).location)).toEqual({ error: 'not_configured' });
    const rows = await app.audit();
    expect((await admin.delete(path)).status).toBe(404);
    expect(await app.audit()).toEqual(rows);
  });

  it.each([
    ['the only one', [['oidc']]],
    ['the second of two', [['password'], ['oidc']]],
    ['the first of two', [['oidc'], ['password']]],
  ])('409: while a step, %s, can be taken by nothing else (AUTH-47, AUTH-57)', async (_, steps) => {
    await allowOidc(admin);
    await proveOidc(provider, app);
    await allowOidc(admin, steps);
    const rows = await app.audit();
    const { status, body } = await admin.delete(path);
    expect([status, body.error.code]).toEqual([409, 'CONFLICT']);
    expect(await configured()).toBe(true);
    expect(await app.audit()).toEqual(rows);
    await allowOidc(admin, [['password']]);
    expect((await admin.delete(path)).status).toBe(200);
  });

  it('200: while a step can be taken by a password as well (AUTH-57)', async () => {
    await allowOidc(admin, [['password', 'oidc']]);
    expect((await admin.delete(path)).status).toBe(200);
  });

  it('409: while mail is not configured, in a step for codes and the provider; 200 once it is (AUTH-47, AUTH-57)', async () => {
    await allowOidc(admin);
    await proveOidc(provider, app);
    await allowOidc(admin, [['otp', 'oidc']]);
    expect((await admin.delete(path)).status).toBe(409);
    expect((await admin.put('/settings/smtp', smtp)).status).toBe(200);
    expect((await admin.delete(path)).status).toBe(200);
    expect((await admin.delete('/settings/smtp')).status).toBe(409);
  });

  it('409 for the mail server of such a step once the provider is gone; not before (AUTH-47, AUTH-57)', async () => {
    await admin.put('/settings/smtp', smtp);
    await allowOidc(admin, [['otp', 'oidc']]);
    expect((await admin.delete('/settings/smtp')).status).toBe(200);
    expect((await admin.delete(path)).status).toBe(409);
  });

  it('200: while OIDC_* say otherwise anyway (AUTH-57, CONFIG-23)', async () => {
    await allowOidc(admin);
    await proveOidc(provider, app);
    await allowOidc(admin, [['oidc']]);
    Object.assign(app.environment, provider.environment);
    expect((await app.service(['FETCH_CONFIG']).post('/users/updateAppConfig')).status).toBe(200);
    expect((await admin.delete(path)).status).toBe(200);
    expect((await admin.get(path)).body).toMatchObject({ configured: true, source: 'configuration', note: null });
  });

  it('403: for a member and for a token without org:admin, and nothing changes (AUDIT-4)', async () => {
    const member = await app.member(admin, 'member@example.com');
    expect((await member.delete(path)).status).toBe(403);
    expect((await (await admin.token({ scopes: ['org:write'] })).delete(path)).status).toBe(403);
    expect(await configured()).toBe(true);
  });
});
