import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { NatsServer } from '../../../../harness/nats-server.ts';
import { addEvents } from '../../../test/support/event-reader.ts';
import { addDeadLetter, addRelay, unserved } from '../../../test/support/stored-relays.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';
import { toTimestamp } from '../../base/clock.ts';

const path = '/events/relays';
const broker = 'entity-events/broker';

let nats: NatsServer;
let app: TestApp;
let admin: Client;

beforeAll(async () => {
  nats = await NatsServer.begin();
  app = await TestApp.start({ EVENTS_URL: nats.url });
  admin = await app.setUp();
});
afterAll(async () => {
  await app.close();
  await nats.close();
});

async function relay(name: string): Promise<Json> {
  return (await admin.get(path)).body.relays.find((one: Json) => one.name === name);
}

describe('GET /events/relays', () => {
  it('200: nothing where nothing was ever sent, and from where to where the log goes (EVENT-28)', async () => {
    const alone = await TestApp.start();
    const boss = await alone.setUp();
    expect((await boss.get(path)).body).toEqual({ oldest: 1, newest: 2, relays: [] });
    await alone.services.db.transaction((tx) => tx.deleteFrom('outbox').execute());
    expect((await boss.get(path)).body).toEqual({ oldest: 3, newest: 2, relays: [] });
    await alone.close();
  });

  it('200: how far each subscription is, while it delivers (EVENT-28)', async () => {
    await vi.waitUntil(async () => (await relay(broker)).behind === 0, { timeout: 15_000 });
    const { body } = await admin.get(path);
    expect(body.relays.map(({ name }: Json) => name)).toEqual(['audit-events/broker', broker]);
    expect(await relay(broker)).toEqual({
      name: broker,
      state: 'delivering',
      position: 2,
      behind: 0,
      deadLetters: 0,
      deliveredAt: toTimestamp(app.clock.now()),
      failingSince: null,
      attempts: 0,
      nextTryAt: null,
      lastError: null,
    });
  });

  it('200: the audit log is counted by itself (AUDIT-1, EVENT-28)', async () => {
    const name = 'audit-events/broker';
    const records = (await app.audit()).length;
    await vi.waitUntil(async () => (await relay(name)).position === records, { timeout: 15_000 });
    expect(await relay(name)).toMatchObject({ behind: 0, state: 'delivering' });
  });

  it('200: how far it is behind, since when and why, and when it is tried again (EVENT-17, EVENT-28)', async () => {
    await nats.stop();
    app.clock.advance(5_000);
    const since = toTimestamp(app.clock.now());
    await addEvents(admin, 3);
    await vi.waitUntil(async () => (await relay(broker)).state === 'failing', { timeout: 15_000 });
    const state = await relay(broker);
    expect(state).toMatchObject({ position: 2, behind: 3, failingSince: since, attempts: 1 });
    expect(state.lastError).toBeTypeOf('string');
    expect(Date.parse(state.nextTryAt)).toBeGreaterThan(app.clock.now());
    // The time comes, and it is tried again.
    app.clock.advance(10_000);
    await vi.waitUntil(async () => (await relay(broker)).attempts === 2, { timeout: 15_000 });
    expect(await relay(broker)).toMatchObject({ failingSince: since });
  });

  it('200: it goes on as soon as the broker is back, and forgets what was (EVENT-17, EVENT-28)', async () => {
    await nats.start();
    app.clock.advance(10_000);
    await vi.waitUntil(async () => (await relay(broker)).behind === 0, { timeout: 15_000 });
    expect(await relay(broker)).toMatchObject({
      state: 'delivering',
      position: 5,
      failingSince: null,
      attempts: 0,
      nextTryAt: null,
      lastError: null,
      deliveredAt: toTimestamp(app.clock.now()),
    });
  });

  it('200: what is not served, and how many dead letters there are, those asked for again left out (EVENT-23, EVENT-28)', async () => {
    await addRelay(app, unserved, 1);
    await addDeadLetter(app, 1);
    await addDeadLetter(app, 2);
    await addDeadLetter(app, 3, { requeuedAt: app.clock.now() });
    expect(await relay(unserved)).toMatchObject({
      state: 'off',
      position: 1,
      behind: 4,
      deadLetters: 2,
      deliveredAt: null,
    });
    expect(await relay(broker)).toMatchObject({ deadLetters: 0 });
  });

  it('200: a broker that is not configured any more is off, and keeps its place (EVENT-22, EVENT-28)', async () => {
    delete app.environment['EVENTS_URL'];
    app.services.reloadConfig();
    await vi.waitUntil(async () => (await relay(broker)).state === 'off', { timeout: 15_000 });
    await addEvents(admin, 1, 'off');
    expect(await relay(broker)).toMatchObject({ position: 5, behind: 1 });
    app.environment['EVENTS_URL'] = nats.url;
    app.services.reloadConfig();
    await vi.waitUntil(async () => (await relay(broker)).behind === 0, { timeout: 15_000 });
    expect((await nats.messages('entity-events')).map(({ body }) => JSON.parse(body).sequence)).toEqual([
      1, 2, 3, 4, 5, 6,
    ]);
  });

  it('401 and 403: for administrators, by a token with org:admin (EVENT-28)', async () => {
    const member = await app.member(admin, 'grace@example.com');
    const callers = [
      app.anonymous,
      app.service(['EVENTS_READ']),
      member,
      await admin.token({ scopes: ['org:read'] }),
      await admin.token({ scopes: ['org:admin'] }),
    ];
    const statuses = await Promise.all(callers.map(async (caller) => (await caller.get(path)).status));
    expect(statuses).toEqual([401, 401, 403, 403, 200]);
  });
});
