import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { outcomeOf } from '../../../test/support/browser.ts';
import { allowOidc, OidcServer, RunningClock } from '../../../test/support/oidc-server.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';

const grace = { sub: 'grace', email: 'grace@example.com', email_verified: true, name: 'Grace' };

describe('GET /userAccount/oidc/callback where no step takes oidc', () => {
  let provider: OidcServer;
  let app: TestApp;
  let admin: Client;
  beforeAll(async () => {
    provider = await OidcServer.start();
    app = await TestApp.start(provider.environment, new RunningClock());
    admin = await app.setUp();
  });
  afterAll(async () => {
    await app.close();
    await provider.stop();
  });

  it('302 with not_configured, and no one gets an account, until a step takes it (AUTH-47, AUTH-48)', async () => {
    const users = async () => (await admin.get('/users')).body.map(({ email }: Json) => email);
    const before = await users();
    expect(outcomeOf(await provider.walk(app, grace))).toEqual({ error: 'not_configured' });
    expect(await users()).toEqual(before);
    await allowOidc(admin);
    expect(outcomeOf(await provider.walk(app, grace))).toHaveProperty('oidc');
    expect(await users()).toEqual([...before, grace.email]);
  });
});
