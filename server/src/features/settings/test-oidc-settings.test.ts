import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { HandmadeProvider, says } from '../../../test/support/handmade-provider.ts';
import { OidcServer, clientSecret as rightSecret } from '../../../test/support/oidc-server.ts';
import { type Client, TestApp } from '../../../test/support/test-app.ts';

const path = '/settings/oidc/test';
const clientSecret = 'the-secret-of-the-client-4711';

describe('POST /settings/oidc/test', () => {
  let provider: HandmadeProvider;
  let app: TestApp;
  let admin: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    provider = await HandmadeProvider.start(() => app.clock.now());
  });
  afterAll(async () => {
    await app.close();
    await provider.stop();
  });
  afterEach(() => {
    provider.faults = {};
  });

  it('400: while nothing is configured, and nothing is written down (AUTH-48)', async () => {
    const rows = await app.audit();
    const { status, body } = await admin.post(path);
    expect([status, body.error.code]).toEqual([400, 'BAD_REQUEST']);
    expect(body.message).toContain('OIDC_ISSUER');
    expect(await app.audit()).toEqual(rows);
  });

  it('200: when the provider answers; each time it is asked anew (AUTH-48, AUDIT-4)', async () => {
    const { issuer } = provider;
    expect((await admin.put('/settings/oidc', { issuer, clientId: 'latchkey', clientSecret })).status).toBe(200);
    const { status, body } = await admin.post(path);
    expect([status, body]).toEqual([
      200,
      {
        message:
          'The provider answers. Whether it accepts the client secret could not be proved (a made-up secret gets the same answer: it issues tokens for a made-up code): sign in by single sign-on once',
        clientSecretProved: false,
      },
    ]);
    await admin.post(path);
    const asked = (place: string) => provider.asked.filter((one) => one === place).length;
    expect([asked('discovery'), asked('token')]).toEqual([2, 8]);
    expect((await app.audit()).at(-1)).toMatchObject({ action: 'settings.oidc-tested', actor_user_id: admin.userId });
  });

  it.each<[string, HandmadeProvider['faults'], RegExp]>([
    ['fails', { at: { discovery: says(500, '{}') } }, /status code/],
    ['answers HTML', { at: { discovery: says(200, '<p>', { 'content-type': 'text/html' }) } }, /content-type/],
    ['says to be another', { description: { issuer: 'https://evil.example.com' } }, /issuer/],
    ['leads elsewhere', { at: { discovery: says(302, '', { location: 'http://127.0.0.1:1/' }) } }, /status code/],
    [
      'names a token endpoint inside',
      { description: { token_endpoint: 'https://10.1.2.3/token' } },
      /token_endpoint.*OUTBOUND_NETWORKS/,
    ],
    ['names keys inside', { description: { jwks_uri: 'https://[fd00::1]/jwks' } }, /jwks_uri.*OUTBOUND_NETWORKS/],
    [
      'closes',
      { at: { discovery: (response) => response.destroy() } },
      /no valid response, from an address that is not public/,
    ],
  ])('502: when the provider %s, and the answer says so (AUTH-48)', async (_, faults, said) => {
    provider.faults = faults;
    const { status, body, text } = await admin.post(path);
    expect([status, body.error.code]).toEqual([502, 'UPSTREAM_BAD_ANSWER']);
    expect(body.message).toMatch(said);
    expect(text).not.toContain(clientSecret);
    expect(app.logLines.join('\n')).not.toContain(clientSecret);
  });

  it('200 with the right client secret, 502 with a wrong one, at a real provider (FIT-3)', async () => {
    const real = await OidcServer.start();
    const { issuer } = real;
    const settings = { issuer, clientId: 'latchkey', clientSecret: rightSecret };
    await admin.put('/settings/oidc', settings);
    expect((await admin.post(path)).body).toEqual({
      message: 'The provider answers, and accepts the client secret',
      clientSecretProved: true,
    });
    for (const wrong of [{ clientSecret: 'wrong-secret-4711' }, { clientId: 'unknown' }]) {
      await admin.put('/settings/oidc', { ...settings, ...wrong });
      const { status, body, text } = await admin.post(path);
      expect([status, body.error.code]).toEqual([502, 'UPSTREAM_BAD_ANSWER']);
      expect(body.message).toContain('it refuses the client id or secret: the provider answers 401 invalid_client: ');
      expect(text).not.toContain('wrong-secret-4711');
    }
    expect((await app.audit()).at(-1)).toMatchObject({ action: 'settings.oidc-tested', outcome: 'failure' });
    await real.stop();
    await admin.put('/settings/oidc', { issuer: provider.issuer, clientId: 'latchkey', clientSecret });
  });

  it('403: for a member and for a token without org:admin; no one is asked (AUDIT-4)', async () => {
    const asked = provider.asked.length;
    const member = await app.member(admin, 'member@example.com');
    expect((await member.post(path)).status).toBe(403);
    expect((await (await admin.token({ scopes: ['org:write'] })).post(path)).status).toBe(403);
    expect(provider.asked).toHaveLength(asked);
  });

  it('429: after ten tries in a minute, by person', async () => {
    const environment = {
      RATE_LIMIT: 'on',
      OIDC_ISSUER: provider.issuer,
      OIDC_CLIENT_ID: 'latchkey',
      OIDC_CLIENT_SECRET: clientSecret,
    };
    const limited = await TestApp.start(environment);
    const limitedAdmin = await limited.setUp();
    const statuses: number[] = [];
    for (let count = 0; count < 11; count += 1) statuses.push((await limitedAdmin.post(path)).status);
    expect(statuses).toEqual([...Array.from({ length: 10 }, () => 200), 429]);
    await limited.close();
  });
});
