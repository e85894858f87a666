import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { NatsServer } from '../../../../harness/nats-server.ts';
import { storedRows } from '../../../test/support/second-connection.ts';
import { addDeadLetter, unserved } from '../../../test/support/stored-relays.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';

const path = '/events/dead-letters/requeue';
const other = 'entity-events/broker';

let app: TestApp;
let admin: Client;

beforeAll(async () => {
  app = await TestApp.start();
  admin = await app.setUp();
});
afterEach(() => app.services.db.transaction((tx) => tx.deleteFrom('dead_letters').execute()));
afterAll(() => app.close());

async function requeued(): Promise<string[]> {
  const { deadLetters } = (await admin.get('/events/dead-letters')).body;
  return deadLetters.filter(({ requeuedAt }: Json) => requeuedAt !== null).map(({ id }: Json) => id);
}

describe('POST /events/dead-letters/requeue', () => {
  it('200: some, by their ids; what is none is left out (EVENT-23)', async () => {
    const [first, second] = [await addDeadLetter(app, 1), await addDeadLetter(app, 2)];
    const ids = [second.toUpperCase(), second, 'f'.repeat(24)];
    const { status, body } = await admin.post(path, { ids });
    expect([status, body, await requeued()]).toEqual([200, { requeued: 1 }, [second]]);
    expect((await app.audit()).at(-1)).toMatchObject({
      action: 'dead-letters.requeued',
      actor_user_id: admin.userId,
      details: { requeued: 1, relay: null },
    });
    expect((await admin.post(path, { ids: [first, second] })).body).toEqual({ requeued: 1 });
  });

  it('200: those of one subscription, and of these only some (EVENT-23)', async () => {
    const [here, there] = [await addDeadLetter(app, 1), await addDeadLetter(app, 1, { relay: other })];
    expect((await admin.post(path, { relay: unserved, ids: [there] })).body).toEqual({ requeued: 0 });
    expect((await admin.post(path, { relay: unserved })).body).toEqual({ requeued: 1 });
    expect(await requeued()).toEqual([here]);
  });

  it('200: all of them (EVENT-23)', async () => {
    for (const sequence of [1, 2]) await addDeadLetter(app, sequence);
    await addDeadLetter(app, 1, { relay: other });
    expect((await admin.post(path, {})).body).toEqual({ requeued: 3 });
    expect(await requeued()).toHaveLength(3);
  });

  it('200: where there is nothing to ask for, nothing is written (EVENT-23)', async () => {
    const before = storedRows(app);
    expect((await admin.post(path, {})).body).toEqual({ requeued: 0 });
    expect(storedRows(app)).toEqual(before);
  });

  it('200: what is asked for again arrives, and is no dead letter any more (EVENT-23)', async () => {
    const broker = await NatsServer.begin();
    const sending = await TestApp.start({ EVENTS_URL: broker.url });
    const boss = await sending.setUp();
    const arrived = async () => (await broker.messages('entity-events')).map(({ body }) => JSON.parse(body).sequence);
    await vi.waitUntil(async () => (await arrived()).length === 2, { timeout: 15_000 });
    // As if its message had been refused; another id, so that the broker does not take it for the same.
    await sending.services.db.transaction((tx) =>
      tx
        .updateTable('outbox')
        .set({ id: 'f'.repeat(24) })
        .where('sequence', '=', 1)
        .execute(),
    );
    await addDeadLetter(sending, 1, { relay: other });
    expect((await boss.post(path, {})).body).toEqual({ requeued: 1 });
    await vi.waitUntil(async () => (await arrived()).length === 3, { timeout: 15_000 });
    expect(await arrived()).toEqual([1, 2, 1]);
    await vi.waitUntil(async () => (await boss.get('/events/dead-letters')).body.pagination.totalCount === 0);
    await sending.close();
    await broker.close();
  });

  it.each([
    { ids: [] },
    { ids: ['x'] },
    { ids: 'all' },
    { relay: 1 },
    { relay: 'x'.repeat(201) },
    { ids: Array(20_001).fill('f'.repeat(24)) },
  ])('400: what is no such wish (ERR-11)', async (body) => {
    expect((await admin.post(path, body)).status).toBe(400);
  });

  it('401 and 403: for administrators, by a token with org:admin (EVENT-23)', async () => {
    await addDeadLetter(app, 1);
    const member = await app.member(admin, 'grace@example.com');
    const others = [app.anonymous, app.service(['EVENTS_READ']), member, await admin.token({ scopes: ['org:write'] })];
    const statuses = await Promise.all(others.map(async (caller) => (await caller.post(path, {})).status));
    expect([statuses, await requeued()]).toEqual([[401, 401, 403, 403], []]);
    expect((await member.post(path, { ids: 'x' })).status).toBe(403);
    expect((await (await admin.token({ scopes: ['org:admin'] })).post(path, {})).body).toEqual({ requeued: 1 });
  });
});
