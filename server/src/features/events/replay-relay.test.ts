import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { RedisServer } from '../../../../harness/redis-server.ts';
import { addEvents } from '../../../test/support/event-reader.ts';
import { storedRows } from '../../../test/support/second-connection.ts';
import { addRelay, unserved } from '../../../test/support/stored-relays.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';

const path = '/events/relays/replay';
const audit = 'audit-events/elsewhere';

let app: TestApp;
let admin: Client;

beforeAll(async () => {
  app = await TestApp.start();
  admin = await app.setUp();
  await addEvents(admin, 8);
  await addRelay(app, unserved, 7);
  await addRelay(app, audit, 5);
});
afterAll(() => app.close());

const positionOf = async (name: string) =>
  (await admin.get('/events/relays')).body.relays.find((relay: Json) => relay.name === name).position;

describe('POST /events/relays/replay', () => {
  it('200: goes on after a sequence, and tells it in the audit log (EVENT-10, EVENT-27)', async () => {
    const { status, body } = await admin.post(path, { relay: unserved, after: 3 });
    expect([status, body, await positionOf(unserved)]).toEqual([200, { message: 'Events are sent again' }, 3]);
    const record = (await app.audit()).at(-1);
    expect(record).toMatchObject({
      action: 'relay.replayed',
      actor_user_id: admin.userId,
      details: { relay: unserved },
    });
    expect(record.changes).toEqual({ position: { before: 7, after: 3 } });
  });

  it('200: to its beginning, and tries at once whatever failed before (EVENT-10)', async () => {
    await app.services.db.transaction((tx) =>
      tx
        .updateTable('relays')
        .set({ attempts: 3, next_try_at: app.clock.now() + 1_000, failing_since: app.clock.now(), last_error: 'down' })
        .where('name', '=', unserved)
        .execute(),
    );
    expect((await admin.post(path, { relay: unserved, after: 0 })).status).toBe(200);
    const { relays } = (await admin.get('/events/relays')).body;
    expect(relays.find(({ name }: Json) => name === unserved)).toMatchObject({
      position: 0,
      attempts: 0,
      nextTryAt: null,
      failingSince: null,
      lastError: null,
    });
  });

  it('200: never skips what was not sent yet: a subscription is not moved forward (EVENT-9)', async () => {
    for (const after of [5, 10, 999_999]) {
      expect((await admin.post(path, { relay: unserved, after })).status).toBe(200);
      expect(await positionOf(unserved)).toBe(0);
    }
  });

  it('410: what is no longer kept, naming the oldest; the audit log is kept whole (EVENT-10, EVENT-12)', async () => {
    await app.services.db.transaction((tx) => tx.deleteFrom('outbox').where('sequence', '<=', 4).execute());
    const { status, body } = await admin.post(path, { relay: unserved, after: 3 });
    expect([status, body.error.code, body.oldest]).toEqual([410, 'GONE', 5]);
    expect((await admin.post(path, { relay: audit, after: 0 })).status).toBe(200);
    expect(await positionOf(audit)).toBe(0);
    expect((await admin.post(path, { relay: unserved, after: 4 })).status).toBe(200);
  });

  it('404: a subscription that was never used; nothing is written (EVENT-27)', async () => {
    const before = storedRows(app);
    for (const relay of ['', 'entity-events', 'entity-events/broker']) {
      expect((await admin.post(path, { relay, after: 0 })).status).toBe(404);
    }
    expect(storedRows(app)).toEqual(before);
  });

  it('200: everything comes again, in order, and what happens next comes after it (EVENT-9, EVENT-10)', async () => {
    const broker = await RedisServer.begin();
    const sending = await TestApp.start({ EVENTS_URL: broker.url });
    const boss = await sending.setUp();
    const arrived = async () => (await broker.entries('entity-events')).map(({ value }) => JSON.parse(value));
    await vi.waitUntil(async () => (await arrived()).length === 2, { timeout: 15_000 });
    expect((await boss.post(path, { relay: 'entity-events/broker', after: 0 })).status).toBe(200);
    await addEvents(boss, 1);
    await vi.waitUntil(async () => (await arrived()).length >= 5, { timeout: 15_000 });
    const events = await arrived();
    expect(events.map(({ sequence }) => sequence)).toEqual([1, 2, 1, 2, 3]);
    // The same events, by their ids.
    expect(events.slice(0, 2)).toEqual(events.slice(2, 4));
    await sending.close();
    await broker.close();
  });

  it.each([
    {},
    { relay: unserved },
    { after: 0 },
    { relay: unserved, after: -1 },
    { relay: unserved, after: '0' },
    { relay: unserved, after: 0.5 },
    { relay: unserved, after: null },
    { relay: 'x'.repeat(201), after: 0 },
  ])('400: %j', async (body) => {
    expect((await admin.post(path, body)).status).toBe(400);
  });

  it('401 and 403: for administrators, by a token with org:admin (EVENT-27)', async () => {
    const body = { relay: audit, after: 0 };
    const member = await app.member(admin, 'grace@example.com');
    const others = [app.anonymous, app.service(['EVENTS_READ']), member, await admin.token({ scopes: ['org:write'] })];
    const statuses = await Promise.all(others.map(async (caller) => (await caller.post(path, body)).status));
    expect(statuses).toEqual([401, 401, 403, 403]);
    expect((await member.post(path, {})).status).toBe(403);
    expect((await (await admin.token({ scopes: ['org:admin'] })).post(path, body)).status).toBe(200);
  });
});
