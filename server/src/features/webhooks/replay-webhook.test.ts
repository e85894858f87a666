import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';
import { presentClock, reply, verified, WebhookReceiver } from '../../../test/support/webhook-receiver.ts';
import { loopback, registerWebhook } from '../../../test/support/webhooks.ts';

let receiver: WebhookReceiver;
let app: TestApp;
let admin: Client;
beforeAll(async () => {
  receiver = await WebhookReceiver.start();
  app = await TestApp.start(loopback, presentClock());
  admin = await app.setUp();
  for (const name of ['bob', 'carl']) await admin.post('/users', { fullName: name, email: `${name}@example.com` });
});
beforeEach(() => {
  receiver.messages.length = 0;
  receiver.answering = reply(204);
});
afterAll(async () => {
  await app.close();
  await receiver.stop();
});

const replay = (id: string, body: Json, client = admin) => client.post(`/webhooks/${id}/replay`, body);
const sequences = () => receiver.messages.map(({ body }) => body.sequence);
const all = async () => (await app.events()).map(({ sequence }) => sequence);

/** A webhook that has got everything there is. */
async function registered(more: Json = {}): Promise<Json> {
  const webhook = await registerWebhook(admin, receiver.url, { after: 0, ...more });
  const expected = more.events ? 1 : (await all()).length;
  await vi.waitUntil(() => receiver.messages.length === expected);
  receiver.messages.length = 0;
  return webhook;
}

describe('POST /webhooks/:webhookId/replay', () => {
  it('200: everything after a sequence is sent again, in order, with the same ids (EVENT-10, EVENT-27)', async () => {
    const { id, secret } = await registered();
    const events = await app.events();
    for (const after of [0, 2]) {
      receiver.messages.length = 0;
      const { status, body } = await replay(id, { after });
      expect([status, body]).toEqual([200, { message: 'The events will be sent again' }]);
      const expected = events.filter(({ sequence }) => sequence > after);
      await vi.waitUntil(() => receiver.messages.length === expected.length);
      expect(sequences()).toEqual(expected.map(({ sequence }) => sequence));
      expect(receiver.messages.map((message) => verified(secret, message).id)).toEqual(expected.map((one) => one.id));
    }
    await admin.delete(`/webhooks/${id}`);
  });

  it('200: a webhook that waits after failures begins at once (EVENT-26)', async () => {
    receiver.answering = reply(500);
    const { id } = await registerWebhook(admin, receiver.url, { after: 0 });
    const relay = () =>
      app.services.db.read.selectFrom('relays').where('name', '=', `entity-events/webhook/${id}`).selectAll();
    await vi.waitUntil(async () => (await relay().executeTakeFirstOrThrow()).attempts === 1);
    receiver.answering = reply(204);
    receiver.messages.length = 0;
    await replay(id, { after: 0 });
    const expected = await all();
    await vi.waitUntil(() => receiver.messages.length === expected.length);
    expect(sequences()).toEqual(expected);
    await admin.delete(`/webhooks/${id}`);
  });

  it('200: one event is sent again, once, whatever the webhook asks for otherwise (EVENT-27)', async () => {
    const { id } = await registered({ events: ['orgCreated'] });
    const event = (await app.events()).at(-1);
    for (const eventId of [event.id, event.id.toUpperCase()]) {
      receiver.messages.length = 0;
      expect((await replay(id, { eventId })).status).toBe(200);
      await vi.waitUntil(() => receiver.messages.length === 1);
      expect(receiver.messages[0]?.body).toMatchObject({ id: event.id, eventType: 'userAdded' });
    }
    const { attempts } = (await admin.get(`/webhooks/${id}/attempts`)).body;
    expect(attempts.map(({ attempt }: Json) => attempt)).toEqual([2, 1, 1]);
    expect(await app.services.db.read.selectFrom('dead_letters').selectAll().execute()).toEqual([]);
    await admin.delete(`/webhooks/${id}`);
  });

  it('200: what is asked of a webhook that is off comes when it is on again (EVENT-26)', async () => {
    const { id } = await registered();
    await admin.patch(`/webhooks/${id}`, { enabled: false });
    const last = (await all()).at(-1);
    expect((await replay(id, { after: last - 1 })).status).toBe(200);
    await admin.patch(`/webhooks/${id}`, { enabled: true });
    await vi.waitUntil(() => receiver.messages.length === 1);
    expect(sequences()).toEqual([last]);
    await admin.delete(`/webhooks/${id}`);
  });

  it('400: a sequence that it has not come to, and one that is no longer kept, naming what there is (EVENT-10)', async () => {
    const own = await TestApp.start();
    const owner = await own.setUp();
    const { id } = await registerWebhook(owner, 'https://example.invalid/', { after: 1 });
    const message = async (after: number) => {
      const { status, body } = await owner.post(`/webhooks/${id}/replay`, { after });
      return status === 200 ? null : [status, body.error.details[0]];
    };
    const refused = (text: string) => [400, { field: 'body.after', message: text }];
    expect(await message(2)).toEqual(refused('must be from 0 to 1'));
    await own.services.db.transaction((tx) => tx.deleteFrom('outbox').where('sequence', '=', 1).execute());
    expect(await message(0)).toEqual(refused('must be from 1 to 1'));
    expect(await message(1)).toBeNull();
    await own.close();
  });

  it.each([
    ['neither', {}],
    ['both', { after: 0, eventId: 'f'.repeat(24) }],
    ['a sequence that is none', { after: -1 }],
    ['an id that is none', { eventId: 'x' }],
  ])('400: %s', async (_, body) => {
    const { id } = await registerWebhook(admin, 'https://example.invalid/');
    expect((await replay(id, body)).status).toBe(400);
    await admin.delete(`/webhooks/${id}`);
  });

  it('404: an event that is not there', async () => {
    const { id } = await registerWebhook(admin, 'https://example.invalid/');
    expect((await replay(id, { eventId: 'f'.repeat(24) })).status).toBe(404);
  });

  it('403: for members; and the audit log tells of what was done (SCOPE-17, AUDIT-9)', async () => {
    const { id } = await registered();
    const member = await app.member(admin, 'grace@example.com');
    expect((await replay(id, { after: 0 }, member)).status).toBe(403);
    await replay(id, { after: 0 });
    const record = (await app.audit()).at(-1);
    expect(record).toMatchObject({ action: 'webhook.replayed', subject_id: id, details: { after: 0 } });
  });
});
