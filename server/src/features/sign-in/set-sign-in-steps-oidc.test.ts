import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { outcomeOf } from '../../../test/support/browser.ts';
import {
  allowOidc,
  clientId,
  clientSecret,
  OidcServer,
  proveOidc,
  publicUrl,
  RunningClock,
  showTicket,
} from '../../../test/support/oidc-server.ts';
import { stepsOf } from '../../../test/support/sign-in-desk.ts';
import { type Client, TestApp } from '../../../test/support/test-app.ts';

const path = '/orgAuthConfig/updateAuthMethod';
const refused = { status: 400, body: { error: { code: 'BAD_REQUEST' } } };

describe('a step that only single sign-on takes', () => {
  const clock = new RunningClock();
  let provider: OidcServer;
  let app: TestApp;
  let admin: Client;

  beforeAll(async () => {
    provider = await OidcServer.start();
    app = await TestApp.start({ BASE_URL: publicUrl }, clock);
    admin = await app.setUp();
    await admin.put('/settings/oidc', settings());
  });
  afterAll(async () => {
    await app.close();
    await provider.stop();
  });
  const settings = () => ({ issuer: provider.issuer, clientId, clientSecret, allowedDomains: ['example.com'] });
  const set = (...steps: readonly (readonly ('password' | 'otp' | 'oidc')[])[]) =>
    admin.post(path, { authMethod: stepsOf(...steps) });

  it('400: until an administrator has signed in by it, whoever else has, or came back from the provider (FIT-7)', async () => {
    await allowOidc(admin);
    for (const steps of [[['oidc']], [['password'], ['oidc']], [['otp', 'oidc']]] as const) {
      const { status, body } = await set(...steps);
      expect([status, body.error.code]).toEqual([400, 'BAD_REQUEST']);
      expect(body.message).toContain('no administrator has signed in by it');
    }
    await allowOidc(admin);
    await proveOidc(provider, app, 'member@example.com');
    expect(await set(['oidc'])).toMatchObject(refused);
    const ada = { sub: 'ada@example.com', email: 'ada@example.com', email_verified: true };
    const outcome = outcomeOf(await provider.walk(app, ada));
    expect(await set(['oidc'])).toMatchObject(refused);
    expect((await showTicket(app, outcome)).status).toBe(200);
    expect((await set(['oidc'])).status).toBe(200);
  });

  it('400: once the provider is set otherwise; other fields of the settings count for nothing (FIT-7)', async () => {
    await allowOidc(admin);
    await proveOidc(provider, app);
    await admin.put('/settings/oidc', { ...settings(), allowedDomains: [] });
    expect((await set(['oidc'])).status).toBe(200);
    await allowOidc(admin);
    clock.advance(1);
    await admin.put('/settings/oidc', { ...settings(), clientSecret: 'wrong-secret-4711' });
    expect(await set(['oidc'])).toMatchObject(refused);
    await admin.put('/settings/oidc', settings());
    expect(await set(['oidc'])).toMatchObject(refused);
    clock.advance(1);
    await allowOidc(admin);
    await proveOidc(provider, app);
    expect((await set(['oidc'])).status).toBe(200);
  });

  it('400: while the administrators who signed in by it are none any more, or unlinked (FIT-7)', async () => {
    await allowOidc(admin);
    await proveOidc(provider, app);
    expect((await set(['oidc'])).status).toBe(200);
    await allowOidc(admin);
    expect((await admin.delete(`/users/${admin.userId}/identities`)).body.unlinked).toBe(1);
    admin = await app.signIn('ada@example.com');
    expect(await set(['oidc'])).toMatchObject(refused);
    await allowOidc(admin);
    await proveOidc(provider, app);
    expect((await set(['oidc'])).status).toBe(200);
  });

  it('409, 502: while it is needed, the provider cannot be replaced, or get a wrong secret (FIT-10)', async () => {
    await allowOidc(admin);
    const put = (change: object) => admin.put('/settings/oidc', { ...settings(), emailTrust: 'issuer', ...change });
    await put({});
    clock.advance(1);
    await proveOidc(provider, app);
    expect((await set(['oidc'])).status).toBe(200);
    const before = (await admin.get('/settings/oidc')).body;
    for (const change of [{ issuer: 'https://id.example.com' }, { clientId: 'other' }, { emailTrust: 'claim' }]) {
      expect(await put(change)).toMatchObject({ status: 409, body: { error: { code: 'CONFLICT' } } });
    }
    const wrong = await put({ clientSecret: 'wrong-secret-4711' });
    expect([wrong.status, wrong.body.message]).toEqual([502, expect.stringContaining('invalid_client')]);
    expect((await admin.get('/settings/oidc')).body).toEqual(before);
    expect((await put({ allowedDomains: [] })).status).toBe(200);
    await allowOidc(admin);
    expect((await put({ clientSecret: 'wrong-secret-4711' })).status).toBe(200);
    expect((await set(['oidc'])).status).toBe(400);
  });
});
