import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { storedRows } from '../../../test/support/second-connection.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';
import { registerWebhook } from '../../../test/support/webhooks.ts';

let app: TestApp;
let admin: Client;
beforeAll(async () => {
  app = await TestApp.start();
  admin = await app.setUp();
});
afterAll(() => app.close());

describe('DELETE /webhooks/:webhookId', () => {
  it('200: it is gone, with its position and its dead letters, and no other is (EVENT-18)', async () => {
    const [one, other] = [
      await registerWebhook(admin, 'https://example.invalid/'),
      await registerWebhook(admin, 'https://example.invalid/'),
    ];
    const [event] = await app.events();
    for (const { id } of [one, other]) await admin.patch(`/webhooks/${id}`, { enabled: false });
    for (const { id } of [one, other]) await admin.post(`/webhooks/${id}/replay`, { eventId: event.id });
    const { status, body } = await admin.delete(`/webhooks/${one.id}`);
    expect([status, body]).toEqual([200, { message: 'Webhook deleted successfully' }]);
    const rows = storedRows(app);
    expect(rows['webhooks']?.map(({ id }: Json) => id)).toEqual([other.id]);
    const relay = `entity-events/webhook/${other.id}`;
    const names = rows['relays']?.map(({ name }: Json) => name).filter((name: string) => name.includes('webhook'));
    expect(names).toEqual([relay]);
    expect(rows['dead_letters']?.map((letter: Json) => letter.relay)).toEqual([relay]);
    const record = (await app.audit()).at(-1);
    expect(record).toMatchObject({ action: 'webhook.deleted', subject_id: one.id, actor_user_id: admin.userId });
    expect(record.changes).toMatchObject({ origin: { before: 'https://example.invalid', after: null } });
  });

  it('404: a second time, on every route', async () => {
    const { id } = await registerWebhook(admin, 'https://example.invalid/');
    await admin.delete(`/webhooks/${id}`);
    const calls = [
      admin.delete(`/webhooks/${id}`),
      admin.get(`/webhooks/${id}`),
      admin.patch(`/webhooks/${id}`, { enabled: true }),
      admin.post(`/webhooks/${id}/rotate-secret`),
      admin.post(`/webhooks/${id}/test`),
      admin.get(`/webhooks/${id}/attempts`),
      admin.post(`/webhooks/${id}/replay`, { after: 0 }),
    ];
    for (const call of calls) expect((await call).status).toBe(404);
  });

  it('403: for members (SCOPE-17)', async () => {
    const { id } = await registerWebhook(admin, 'https://example.invalid/');
    const member = await app.member(admin, 'grace@example.com');
    expect((await member.delete(`/webhooks/${id}`)).status).toBe(403);
    expect((await admin.get(`/webhooks/${id}`)).status).toBe(200);
  });
});
