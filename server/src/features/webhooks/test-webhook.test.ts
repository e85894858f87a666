import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Client, TestApp } from '../../../test/support/test-app.ts';
import { presentClock, reply, verified, WebhookReceiver } from '../../../test/support/webhook-receiver.ts';
import { loopback, registerWebhook } from '../../../test/support/webhooks.ts';

let receiver: WebhookReceiver;
let app: TestApp;
let admin: Client;
beforeAll(async () => {
  receiver = await WebhookReceiver.start();
  app = await TestApp.start(loopback, presentClock());
  admin = await app.setUp();
});
beforeEach(() => {
  receiver.messages.length = 0;
  receiver.answering = reply(204);
});
afterAll(async () => {
  await app.close();
  await receiver.stop();
});

const send = (id: string, client = admin) => client.post(`/webhooks/${id}/test`);

describe('POST /webhooks/:webhookId/test', () => {
  it('200: sends a signed test message at once and tells what came of it (EVENT-27)', async () => {
    const { id, secret } = await registerWebhook(admin, receiver.url, { events: ['orgDeleted'] });
    const { status, body } = await send(id);
    expect([status, body]).toEqual([
      200,
      { eventId: expect.any(String), durationMs: expect.any(Number), status: 204, reason: null, isDelivered: true },
    ]);
    const [message] = receiver.messages;
    expect(message?.headers['webhook-id']).toBe(body.eventId);
    expect(message && verified(secret, message)).toEqual({
      eventType: 'webhookTest',
      timestamp: app.clock.now(),
      payload: { orgId: expect.any(String) },
      id: body.eventId,
      sequence: 0,
    });
    expect(receiver.messages).toHaveLength(1);
    await vi.waitUntil(() => receiver.open === 0);
  });

  it('200: to a webhook that is off too, and changes nothing of its state (EVENT-27)', async () => {
    const { id } = await registerWebhook(admin, receiver.url);
    const { body: off } = await admin.patch(`/webhooks/${id}`, { enabled: false });
    receiver.answering = reply(410);
    expect((await send(id)).body).toMatchObject({ status: 410, reason: 'answered 410', isDelivered: false });
    expect((await admin.get(`/webhooks/${id}`)).body).toEqual(off);
    await admin.patch(`/webhooks/${id}`, { enabled: true });
    expect((await send(id)).body.isDelivered).toBe(false);
    expect((await admin.get(`/webhooks/${id}`)).body.state).toBe('on');
  });

  it.each([
    [500, 'answered 500'],
    [404, 'answered 404'],
    [302, 'answered 302: redirects are not followed'],
  ])('200: tells that it answered %i (EVENT-27)', async (status, reason) => {
    receiver.answering = reply(status, { location: 'http://127.0.0.1:1/' });
    const { id } = await registerWebhook(admin, receiver.url);
    expect((await send(id)).body).toMatchObject({ status, reason, isDelivered: false });
  });

  it('200: tells that no one answers, or that no one may be asked (EVENT-24, EVENT-27)', async () => {
    const closed = await WebhookReceiver.start();
    const { url } = closed;
    await closed.stop();
    for (const [address, reason] of [
      [url, 'the connection was refused'],
      ['https://no-such-host.invalid/', expect.stringMatching(/^the name (does not resolve|could not be resolved)$/)],
      [receiver.url.replace('http:', 'https:'), expect.stringMatching(/^the connection is not secure/)],
    ]) {
      const { id } = await registerWebhook(admin, String(address));
      expect((await send(id)).body).toMatchObject({ status: null, reason, isDelivered: false });
    }
    const { id } = await registerWebhook(admin, receiver.url);
    app.environment['OUTBOUND_NETWORKS'] = '10.0.0.0/8';
    app.services.reloadConfig();
    const { body } = await send(id);
    app.environment['OUTBOUND_NETWORKS'] = loopback.OUTBOUND_NETWORKS;
    app.services.reloadConfig();
    expect(body).toMatchObject({ status: null, reason: 'the address is not public, and not in OUTBOUND_NETWORKS' });
    expect(receiver.messages).toEqual([]);
  });

  it('200: what the receiver says is not passed on, and is not read for long', async () => {
    receiver.answering = (response) => {
      response.writeHead(500, { 'content-type': 'text/plain' });
      const more = () => {
        while (response.write('secret of an inner system '.repeat(1_000)));
      };
      response.on('drain', more);
      more();
    };
    const { id } = await registerWebhook(admin, receiver.url);
    const { text, body } = await send(id);
    expect(body).toMatchObject({ status: 500, reason: 'answered 500' });
    expect(text).not.toContain('inner system');
  });

  it('200: as a CloudEvent where those are configured (EVENT-21, CONFIG-30)', async () => {
    const own = await TestApp.start({ ...loopback, EVENTS_FORMAT: 'cloudevents' }, presentClock());
    const owner = await own.setUp();
    const { id, secret } = await registerWebhook(owner, receiver.url);
    await owner.post(`/webhooks/${id}/test`);
    const [message] = receiver.messages;
    expect(message?.headers['content-type']).toBe('application/cloudevents+json; charset=utf-8');
    expect(message && verified(secret, message)).toMatchObject({ specversion: '1.0', type: 'io.latchkey.webhookTest' });
    await own.close();
  });

  it('is in the delivery log, and in the audit log (EVENT-27, AUDIT-9)', async () => {
    const { id } = await registerWebhook(admin, receiver.url);
    const { eventId } = (await send(id)).body;
    const { attempts } = (await admin.get(`/webhooks/${id}/attempts`)).body;
    expect(attempts).toMatchObject([{ eventId, eventType: 'webhookTest', sequence: null, attempt: 1, status: 204 }]);
    expect((await app.audit()).at(-1)).toMatchObject({ action: 'webhook.tested', subject_id: id });
  });

  it('429: after ten in a minute by one person', async () => {
    const own = await TestApp.start({ ...loopback, RATE_LIMIT: 'on' }, presentClock());
    const owner = await own.setUp();
    const { id } = await registerWebhook(owner, receiver.url);
    for (let count = 0; count < 10; count += 1) expect((await owner.post(`/webhooks/${id}/test`)).status).toBe(200);
    expect((await owner.post(`/webhooks/${id}/test`)).status).toBe(429);
    expect(receiver.messages).toHaveLength(10);
    await own.close();
  });

  it('403: for members (SCOPE-17)', async () => {
    const { id } = await registerWebhook(admin, receiver.url);
    const member = await app.member(admin, 'grace@example.com');
    expect((await send(id, member)).status).toBe(403);
    expect(receiver.messages.filter(({ body }) => body.eventType === 'webhookTest')).toEqual([]);
  });
});
