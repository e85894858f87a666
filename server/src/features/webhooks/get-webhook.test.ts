import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, TestApp } from '../../../test/support/test-app.ts';
import { registerWebhook } from '../../../test/support/webhooks.ts';

let app: TestApp;
let admin: Client;
beforeAll(async () => {
  app = await TestApp.start();
  admin = await app.setUp();
});
afterAll(() => app.close());

describe('GET /webhooks/:webhookId', () => {
  it('200: one webhook, without its secret, its id in either case (EVENT-18, EVENT-25)', async () => {
    const { secret: _, ...made } = await registerWebhook(admin, 'https://example.com/');
    for (const id of [made.id, made.id.toUpperCase()]) {
      const { status, body } = await admin.get(`/webhooks/${id}`);
      expect([status, body]).toEqual([200, made]);
    }
  });

  it('400, 404: what is no id, and what is no webhook’s', async () => {
    expect((await admin.get('/webhooks/1')).status).toBe(400);
    for (const id of ['f'.repeat(24), admin.userId]) expect((await admin.get(`/webhooks/${id}`)).status).toBe(404);
  });

  it('403: for members, whether or not there is such a one (SCOPE-17)', async () => {
    const { id } = await registerWebhook(admin, 'https://example.com/');
    const member = await app.member(admin, 'grace@example.com');
    for (const one of [id, 'f'.repeat(24)]) expect((await member.get(`/webhooks/${one}`)).status).toBe(403);
  });
});
