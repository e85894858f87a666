import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';
import { presentClock, reply, WebhookReceiver } from '../../../test/support/webhook-receiver.ts';
import { loopback, registerWebhook } from '../../../test/support/webhooks.ts';
import { second, toTimestamp } from '../../base/clock.ts';

let receiver: WebhookReceiver;
let app: TestApp;
let admin: Client;
beforeAll(async () => {
  receiver = await WebhookReceiver.start();
  app = await TestApp.start(loopback, presentClock());
  admin = await app.setUp();
});
afterAll(async () => {
  await app.close();
  await receiver.stop();
});

const list = async (id: string, query = '') => (await admin.get(`/webhooks/${id}/attempts${query}`)).body;

describe('GET /webhooks/:webhookId/attempts', () => {
  it('200: each attempt, newest first, those of one event counted (EVENT-27)', async () => {
    receiver.answering = reply(500);
    const { id } = await registerWebhook(admin, receiver.url, { events: ['userAdded'] });
    const { body: user } = await admin.post('/users', { fullName: 'Ann', email: 'ann@example.com' });
    const logged = async (count: number) => {
      await vi.waitUntil(async () => (await list(id)).attempts.length === count);
      return (await list(id)).attempts;
    };
    const [failed] = await logged(1);
    const firstAt = toTimestamp(app.clock.now());
    receiver.answering = reply(204);
    app.clock.advance(10 * second);
    const attempts = await logged(2);
    const event = (await app.events()).find(({ payload }: Json) => payload.userId === user._id);
    const common = {
      id: expect.any(String),
      eventId: event.id,
      eventType: 'userAdded',
      sequence: event.sequence,
      durationMs: expect.any(Number),
    };
    const first = { ...common, attempt: 1, attemptedAt: firstAt, status: 500, reason: 'answered 500' };
    const again = { ...common, attempt: 2, attemptedAt: toTimestamp(app.clock.now()), status: 204, reason: null };
    expect(attempts).toEqual([again, first]);
    expect(failed).toEqual(first);
  });

  it('200: page by page, of this webhook alone (EVENT-27)', async () => {
    receiver.answering = reply(204);
    const [{ id }, other] = [await registerWebhook(admin, receiver.url), await registerWebhook(admin, receiver.url)];
    const sent: string[] = [];
    for (let count = 0; count < 5; count += 1) {
      sent.unshift((await admin.post(`/webhooks/${id}/test`)).body.eventId);
      await admin.post(`/webhooks/${other.id}/test`);
    }
    const pages: string[][] = [];
    let query = '?limit=2';
    for (;;) {
      const { attempts, nextCursor } = await list(id, query);
      pages.push(attempts.map(({ eventId }: Json) => eventId));
      if (nextCursor === null) break;
      query = `?limit=2&cursor=${nextCursor}`;
    }
    expect(pages).toEqual([sent.slice(0, 2), sent.slice(2, 4), sent.slice(4)]);
    expect(await list(id, '?limit=5')).toMatchObject({ nextCursor: null });
    // What comes meanwhile moves nothing.
    const { nextCursor } = await list(id, '?limit=2');
    await admin.post(`/webhooks/${id}/test`);
    expect((await list(id, `?limit=2&cursor=${nextCursor}`)).attempts.map(({ eventId }: Json) => eventId)).toEqual(
      sent.slice(2, 4),
    );
  });

  it('200: none yet', async () => {
    const { id } = await registerWebhook(admin, receiver.url);
    expect(await list(id)).toEqual({ attempts: [], nextCursor: null });
  });

  it.each(['limit=0', 'limit=101', 'limit=x', 'cursor=x'])('400: %s', async (query) => {
    const { id } = await registerWebhook(admin, receiver.url);
    expect((await admin.get(`/webhooks/${id}/attempts?${query}`)).status).toBe(400);
    await admin.delete(`/webhooks/${id}`);
  });

  it('403: for members (SCOPE-17)', async () => {
    const { id } = await registerWebhook(admin, receiver.url);
    const member = await app.member(admin, 'grace@example.com');
    expect((await member.get(`/webhooks/${id}/attempts`)).status).toBe(403);
  });
});
