import type { ServerResponse } from 'node:http';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { day, hour, minute, second } from '../../src/base/clock.ts';
import { type Client, TestApp } from '../support/test-app.ts';
import { presentClock, reply, verified, WebhookReceiver } from '../support/webhook-receiver.ts';
import { addUser, arrived, failed, loopback, registerWebhook, relayOf, sequencesAt } from '../support/webhooks.ts';

let receiver: WebhookReceiver;
let app: TestApp;
let admin: Client;
beforeEach(async () => {
  receiver = await WebhookReceiver.start();
  app = await TestApp.start(loopback, presentClock());
  admin = await app.setUp();
});
afterEach(async () => {
  await app.close();
  await receiver.stop();
});

const letters = () => app.services.db.read.selectFrom('dead_letters').selectAll().execute();
const stateOf = async (id: string) => (await (await app.signIn('ada@example.com')).get(`/webhooks/${id}`)).body;

describe('events on their way to a webhook', () => {
  it('each arrives once, in order, signed, as the envelope that GET /events answers (EVENT-1, EVENT-9, EVENT-18)', async () => {
    const { id, secret } = await registerWebhook(admin, receiver.url);
    const first = await addUser(app, admin);
    for (let more = 0; more < 19; more += 1) await addUser(app, admin);
    await arrived(receiver, 20);
    expect(sequencesAt(receiver)).toEqual(Array.from({ length: 20 }, (_, place) => first + place));
    const { events } = (await admin.get(`/events?after=${first - 1}`)).body;
    expect(receiver.messages.map((message) => verified(secret, message))).toEqual(events);
    for (const { headers, body } of receiver.messages) {
      expect([headers['webhook-id'], headers['content-type']]).toEqual([body.id, 'application/json']);
    }
    expect(receiver.connections).toBe(1);
    await vi.waitUntil(async () => (await relayOf(app, id))?.position === first + 19);
  });

  it('only those that it asks for, and another filter counts at once (EVENT-18)', async () => {
    const { id } = await registerWebhook(admin, receiver.url, { events: ['orgUpdated'] });
    await addUser(app, admin);
    await admin.patch('/org', { registeredName: 'Other Ltd' });
    await arrived(receiver, 1);
    expect(receiver.messages[0]?.body.eventType).toBe('orgUpdated');
    await admin.patch(`/webhooks/${id}`, { events: ['userAdded', 'orgUpdated'] });
    const sequence = await addUser(app, admin);
    await arrived(receiver, 2);
    expect(sequencesAt(receiver).at(-1)).toBe(sequence);
  });

  it('the end of the organization too, after which no one can ask (EVENT-4)', async () => {
    await registerWebhook(admin, receiver.url, { events: ['orgDeleted'] });
    await app.deleteOrganization();
    await arrived(receiver, 1);
    expect(receiver.messages[0]?.body.eventType).toBe('orgDeleted');
  });

  it('from a sequence on, from the beginning, or from now on (EVENT-10)', async () => {
    const second = await addUser(app, admin);
    await registerWebhook(admin, receiver.url, { after: 0 });
    await arrived(receiver, second);
    expect(sequencesAt(receiver)).toEqual(Array.from({ length: second }, (_, place) => place + 1));
    receiver.messages.length = 0;
    await registerWebhook(admin, receiver.url, { after: second - 1 });
    await arrived(receiver, 1);
    expect(sequencesAt(receiver)).toEqual([second]);
  });

  it('as CloudEvents where those are configured, from the next message on (EVENT-21, CONFIG-30)', async () => {
    const { secret } = await registerWebhook(admin, receiver.url);
    await addUser(app, admin);
    await arrived(receiver, 1);
    app.environment['EVENTS_FORMAT'] = 'cloudevents';
    app.services.reloadConfig();
    const sequence = await addUser(app, admin);
    await arrived(receiver, 2);
    const message = receiver.messages[1];
    expect(message?.headers['content-type']).toBe('application/cloudevents+json; charset=utf-8');
    expect(message && verified(secret, message)).toMatchObject({
      specversion: '1.0',
      type: 'io.latchkey.userAdded',
      sequence: String(sequence).padStart(20, '0'),
    });
  });

  it('a webhook that is slow or unavailable is in no other’s way, nor in that of requests (EVENT-22, EVENT-17)', async () => {
    const stuck = await WebhookReceiver.start();
    stuck.answering = () => {};
    await registerWebhook(admin, stuck.url);
    await registerWebhook(admin, receiver.url);
    for (let more = 0; more < 3; more += 1) await addUser(app, admin);
    await arrived(receiver, 3);
    expect(stuck.messages).toHaveLength(1);
    await stuck.stop();
  });

  it('goes on after a restart where it was (EVENT-22)', async () => {
    receiver.answering = reply(503);
    const { id, secret } = await registerWebhook(admin, receiver.url);
    const sequence = await addUser(app, admin);
    await failed(app, id, 1);
    await app.stop();
    receiver.answering = reply(204);
    receiver.messages.length = 0;
    const again = await TestApp.start({ ...loopback, DATA_DIR: app.dataDir }, presentClock());
    again.clock.advance(10 * second);
    await arrived(receiver, 1);
    expect(receiver.messages.map((message) => verified(secret, message).sequence)).toEqual([sequence]);
    await again.stop();
  });
});

describe('a webhook that is unavailable (EVENT-23, EVENT-26)', () => {
  it('holds its events and is tried again with growing pauses; then everything comes in order', async () => {
    receiver.answering = reply(500);
    const { id } = await registerWebhook(admin, receiver.url);
    const first = await addUser(app, admin);
    await failed(app, id, 1);
    await addUser(app, admin);
    const pauses = [5 * second, 30 * second, 2 * minute, 10 * minute, 30 * minute, hour, hour];
    for (const [place, pauseMs] of pauses.entries()) {
      // Before the pause is over nothing is tried.
      const { next_try_at: nextMs } = (await relayOf(app, id)) ?? {};
      const waitMs = Number(nextMs) - app.clock.now();
      expect(waitMs).toBeGreaterThanOrEqual(pauseMs);
      expect(waitMs).toBeLessThanOrEqual(pauseMs * 1.1 + 1);
      app.clock.advance(waitMs);
      await failed(app, id, place + 2);
    }
    expect(sequencesAt(receiver)).toEqual(Array(8).fill(first));
    receiver.answering = reply(204);
    receiver.messages.length = 0;
    app.clock.advance(2 * hour);
    await arrived(receiver, 2);
    expect(sequencesAt(receiver)).toEqual([first, first + 1]);
    expect(await letters()).toEqual([]);
    expect((await stateOf(id)).state).toBe('on');
  });

  it('waits for as long as it asks, up to an hour', async () => {
    receiver.answering = reply(429, { 'retry-after': '600' });
    const { id } = await registerWebhook(admin, receiver.url);
    await addUser(app, admin);
    await failed(app, id, 1);
    expect((await relayOf(app, id))?.next_try_at).toBe(app.clock.now() + 600 * second);
  });

  it('is switched off after a day, keeps its place, and goes on from there when it is switched on (EVENT-26)', async () => {
    receiver.answering = reply(500);
    const { id } = await registerWebhook(admin, receiver.url);
    const first = await addUser(app, admin);
    for (let attempts = 1; attempts < 10; attempts += 1) {
      await failed(app, id, attempts);
      app.clock.advance(attempts === 9 ? day - 8 * 2 * hour - 1 : 2 * hour);
    }
    await failed(app, id, 10);
    expect((await stateOf(id)).state).toBe('on');
    app.clock.advance(2 * hour);
    await vi.waitUntil(async () => (await stateOf(id)).state === 'off');
    expect(await stateOf(id)).toMatchObject({ offReason: 'failing' });
    expect((await app.audit()).some(({ action }) => action === 'webhook.switched-off')).toBe(true);
    receiver.answering = reply(204);
    receiver.messages.length = 0;
    const owner = await app.signIn('ada@example.com');
    await addUser(app, owner);
    app.clock.advance(2 * hour);
    await addUser(app, owner);
    expect(receiver.messages).toEqual([]);
    await owner.patch(`/webhooks/${id}`, { enabled: true });
    await arrived(receiver, 3);
    expect(sequencesAt(receiver)).toEqual([first, first + 1, first + 2]);
  });

  it('a day in which nothing was tried counts for nothing: the clock was set forward, or the service stood still', async () => {
    receiver.answering = reply(500);
    const { id } = await registerWebhook(admin, receiver.url);
    await addUser(app, admin);
    await failed(app, id, 1);
    app.clock.advance(3 * day);
    await failed(app, id, 2);
    app.clock.advance(2 * hour);
    await failed(app, id, 3);
    expect((await stateOf(id)).state).toBe('on');
  });

  it('a failure at the address of before holds up nothing at the new one (EVENT-26)', async () => {
    receiver.answering = reply(500);
    const { id } = await registerWebhook(admin, receiver.url);
    const first = await addUser(app, admin);
    await failed(app, id, 1);
    const slow: ServerResponse[] = [];
    receiver.answering = (response) => void slow.push(response);
    app.clock.advance(10 * second);
    await vi.waitUntil(() => slow.length === 1);
    await admin.patch(`/webhooks/${id}`, { url: `${receiver.url}&moved` });
    receiver.messages.length = 0;
    receiver.answering = reply(204);
    slow[0]?.writeHead(500).end();
    await arrived(receiver, 1);
    expect(receiver.messages.map(({ path, body }) => [path.endsWith('&moved'), body.sequence])).toEqual([
      [true, first],
    ]);
  });

  it('410 switches it off at once, and nothing is sent any more (EVENT-26)', async () => {
    receiver.answering = reply(410);
    const { id } = await registerWebhook(admin, receiver.url);
    const first = await addUser(app, admin);
    await vi.waitUntil(async () => (await stateOf(id)).state === 'off');
    expect(await stateOf(id)).toMatchObject({ offReason: 'gone' });
    // A webhook that is off is not behind, and has no metrics.
    await vi.waitUntil(async () => !(await app.services.metrics.expose()).text.includes(id), { timeout: 5_000 });
    await addUser(app, admin);
    expect(sequencesAt(receiver)).toEqual([first]);
    receiver.answering = reply(204);
    receiver.messages.length = 0;
    await admin.patch(`/webhooks/${id}`, { enabled: true });
    await arrived(receiver, 2);
    expect(sequencesAt(receiver)).toEqual([first, first + 1]);
  });
});

describe('an event that a webhook refuses (EVENT-23)', () => {
  it('is tried 5 times, then set aside, and those after it go on; asked for again, it comes (EVENT-27)', async () => {
    const { id } = await registerWebhook(admin, receiver.url);
    const poison = (await app.events()).at(-1).sequence + 1;
    receiver.answering = (response, { body }) => reply(body.sequence === poison ? 422 : 204)(response, {} as never);
    await addUser(app, admin);
    for (let attempts = 1; attempts < 5; attempts += 1) {
      await failed(app, id, attempts);
      if (attempts === 1) await addUser(app, admin);
      const { next_try_at: nextMs } = (await relayOf(app, id)) ?? {};
      app.clock.set(Number(nextMs));
    }
    await arrived(receiver, 6);
    expect(sequencesAt(receiver)).toEqual([poison, poison, poison, poison, poison, poison + 1]);
    expect(await letters()).toMatchObject([{ sequence: poison, attempts: 5, last_error: 'answered 422' }]);
    receiver.answering = reply(204);
    receiver.messages.length = 0;
    const { id: eventId } = (await app.events()).find(({ sequence }) => sequence === poison);
    await admin.post(`/webhooks/${id}/replay`, { eventId });
    await arrived(receiver, 1);
    expect(sequencesAt(receiver)).toEqual([poison]);
    await vi.waitUntil(async () => (await letters()).length === 0);
  });
});

describe('where a webhook leads (EVENT-24, CONFIG-31)', () => {
  it('another OUTBOUND_NETWORKS counts from the next message on', async () => {
    const { id } = await registerWebhook(admin, receiver.url);
    await addUser(app, admin);
    await arrived(receiver, 1);
    app.environment['OUTBOUND_NETWORKS'] = '10.0.0.0/8';
    app.services.reloadConfig();
    const sequence = await addUser(app, admin);
    await failed(app, id, 1);
    expect((await relayOf(app, id))?.last_error).toBe('the address is not public, and not in OUTBOUND_NETWORKS');
    expect([receiver.messages.length, receiver.connections]).toEqual([1, 1]);
    app.environment['OUTBOUND_NETWORKS'] = '127.0.0.1';
    app.services.reloadConfig();
    app.clock.advance(10 * second);
    await arrived(receiver, 2);
    expect(sequencesAt(receiver).at(-1)).toBe(sequence);
  });

  it('another address counts from the next message on, and what failed elsewhere is tried at once (EVENT-26)', async () => {
    const elsewhere = await WebhookReceiver.start();
    elsewhere.answering = reply(500);
    const { id } = await registerWebhook(admin, elsewhere.url);
    const sequence = await addUser(app, admin);
    await failed(app, id, 1);
    await admin.patch(`/webhooks/${id}`, { url: receiver.url });
    await arrived(receiver, 1);
    expect(sequencesAt(receiver)).toEqual([sequence]);
    expect(elsewhere.messages).toHaveLength(1);
    await elsewhere.stop();
  });
});
