import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';
import { registerWebhook } from '../../../test/support/webhooks.ts';

let app: TestApp;
let admin: Client;
beforeAll(async () => {
  app = await TestApp.start();
  admin = await app.setUp();
});
afterAll(() => app.close());

describe('GET /webhooks', () => {
  it('200: all webhooks in order of creation, without their secrets (EVENT-18, EVENT-25)', async () => {
    expect((await admin.get('/webhooks')).body).toEqual({ webhooks: [] });
    const made: Json[] = [];
    for (const name of ['b', 'a', 'c']) {
      made.push(await registerWebhook(admin, `https://${name}.example.com/`, { description: name }));
    }
    const { status, body } = await admin.get('/webhooks');
    expect(status).toBe(200);
    expect(body.webhooks).toEqual(made.map((one) => ({ ...one, secret: undefined })));
    const byToken = await admin.token({ scopes: ['org:admin'] });
    expect((await byToken.get('/webhooks')).body).toEqual(body);
  });

  it('401, 403: for no one, members, and tokens without the scope (SCOPE-17)', async () => {
    const member = await app.member(admin, 'grace@example.com');
    const narrow = await admin.token({ scopes: ['org:read', 'org:write'] });
    expect((await app.anonymous.get('/webhooks')).status).toBe(401);
    expect((await member.get('/webhooks')).status).toBe(403);
    expect((await narrow.get('/webhooks')).status).toBe(403);
  });
});
