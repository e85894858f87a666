import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { NatsServer } from '../../../../harness/nats-server.ts';
import { RedisServer } from '../../../../harness/redis-server.ts';
import { addEvents } from '../../../test/support/event-reader.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';
import { second } from '../../base/clock.ts';

let nats: NatsServer;
let redis: RedisServer;
let app: TestApp;
let admin: Client;

beforeAll(async () => {
  [nats, redis] = [await NatsServer.begin(), await RedisServer.begin()];
  app = await TestApp.start();
  admin = await app.setUp();
});
afterAll(async () => {
  await app.close();
  await nats.close();
  await redis.close();
});

function reload(url: string | null): void {
  if (url === null) delete app.environment['EVENTS_URL'];
  else app.environment['EVENTS_URL'] = url;
  app.services.reloadConfig();
}

const atNats = async () => (await nats.messages('entity-events')).map(({ body }) => JSON.parse(body).sequence);
const atRedis = async () => (await redis.entries('entity-events')).map(({ value }) => JSON.parse(value).sequence);
/** Waits until everything that was written has gone out, wherever to. */
const settled = () =>
  vi.waitUntil(
    async () => {
      // A broker that is closed during a delivery counts as a failure, and is retried after a while.
      app.clock.advance(second);
      const { relays } = (await admin.get('/events/relays')).body;
      return relays.every(({ behind }: Json) => behind === 0);
    },
    { timeout: 15_000 },
  );
const arrived = async (where: () => Promise<number[]>, count: number) => {
  await settled();
  await vi.waitUntil(async () => (await where()).length >= count, { timeout: 15_000 });
};

describe('a broker that is configured while the service runs (EVENT-16, EVENT-22, CONFIG-25)', () => {
  it('gets everything that is still kept, where it is the first', async () => {
    await addEvents(admin, 2);
    reload(nats.url);
    await arrived(atNats, 4);
    expect(await atNats()).toEqual([1, 2, 3, 4]);
    // The audit log has a stream of its own.
    const { length } = await app.audit();
    await vi.waitUntil(async () => (await nats.messages('audit-events')).length === length, { timeout: 15_000 });
  });

  it('goes on from where the one before it was, where it takes its place, and nothing is left out', async () => {
    reload(redis.url);
    // The exchange takes a while, in which the former one may get some more.
    for (let made = 0; (await atRedis()).length < 2 && made < 100; made += 1) {
      await addEvents(admin, 1, `next-${made}`);
      await settled();
    }
    expect((await atRedis()).length).toBeGreaterThanOrEqual(2);
    // What was under way to the former one may have arrived there, too.
    const all = new Set([...(await atNats()), ...(await atRedis())]);
    expect([...all]).toEqual((await app.events()).map(({ sequence }) => sequence));
  });

  it('gets what happened while there was none', async () => {
    reload(null);
    await vi.waitUntil(() => app.services.relays.names().length === 0, { timeout: 5_000 });
    await addEvents(admin, 2, 'meanwhile');
    const { length } = await atNats();
    reload(nats.url);
    await arrived(atNats, length + 2);
    const last = (await app.events()).at(-1).sequence;
    expect((await atNats()).slice(length)).toEqual([last - 1, last]);
  });

  it('is left alone by a reload that changes something else', async () => {
    const subscriptions = app.services.relays.names();
    const { length } = await atNats();
    app.environment['LOG_LEVEL'] = 'warn';
    reload(nats.url);
    await addEvents(admin, 1, 'same');
    await arrived(atNats, length + 1);
    expect([(await atNats()).length, app.services.relays.names()]).toEqual([length + 1, subscriptions]);
  });
});
