import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { BrokerProgram } from '../../../harness/broker-program.ts';
import { NatsServer } from '../../../harness/nats-server.ts';
import { RedisServer } from '../../../harness/redis-server.ts';
import { second } from '../../src/base/clock.ts';
import { commitEvents } from '../support/committed-events.ts';
import { addEvents, EventReader } from '../support/event-reader.ts';
import { nextTurn, secondConnection } from '../support/second-connection.ts';
import { ensureServerIsBuilt, readStore, ServerProcess, withDirectory } from '../support/server-process.ts';
import { type Client, TestApp } from '../support/test-app.ts';

const backlog = 3_000;
const upTo = (last: number) => Array.from({ length: last }, (_, place) => place + 1);

interface Broker extends BrokerProgram {
  readonly url: string;
}

const brokers: readonly (readonly [string, () => Promise<Broker>, (broker: Broker) => Promise<number[]>])[] = [
  [
    'NATS',
    () => NatsServer.begin(),
    async (broker) =>
      (await (broker as NatsServer).messages('entity-events')).map(({ body }) => JSON.parse(body).sequence),
  ],
  [
    'Redis',
    () => RedisServer.begin(),
    async (broker) =>
      (await (broker as RedisServer).entries('entity-events')).map(({ value }) => JSON.parse(value).sequence),
  ],
];

/** Adds events in one commit, as a process of its own. */
function addMany(dataDir: string, count: number): void {
  const store = secondConnection({ dataDir });
  commitEvents(store, count);
  store.close();
}

describe.each(brokers)('a service that stops, with %s behind it (RUN-7)', (_, begin, sequences) => {
  let broker: Broker;
  let app: TestApp;
  let admin: Client;

  beforeEach(async () => {
    broker = await begin();
    app = await TestApp.start({ EVENTS_URL: broker.url });
    admin = await app.setUp();
  });
  afterEach(async () => {
    await app.close();
    await broker.close();
  });

  const faults = () => app.logLines.map((line) => JSON.parse(line)).filter(({ level }) => level >= 50);

  it('ends streams at once, and sends what was written before', async () => {
    const readers = await Promise.all([admin, app.service(['EVENTS_READ'])].map((one) => EventReader.open(app, one)));
    await Promise.all(readers.map((reader) => reader.take(2)));
    addMany(app.dataDir, backlog);
    await app.stop();
    for (const reader of readers) expect(await reader.over()).toBe('orderly');
    const arrived = await sequences(broker);
    expect(new Set(arrived).size).toBe(backlog + 2);
    expect([...new Set(arrived)]).toEqual(upTo(backlog + 2));
    expect(faults()).toEqual([]);
  });

  it('sends what the last request wrote', async () => {
    await addEvents(admin, 1);
    await app.stop();
    expect([...new Set(await sequences(broker))]).toEqual([1, 2, 3]);
  });

  it('is not held up by a broker that hangs, and says nothing wrong; what did not arrive arrives next time (EVENT-9, EVENT-17)', async () => {
    await vi.waitUntil(async () => (await sequences(broker)).length === 2, { timeout: 10_000 });
    await broker.pause();
    await addEvents(admin, 3);
    const startedMs = performance.now();
    await app.stop();
    // Below the ten seconds after which the process gives up.
    expect(performance.now() - startedMs).toBeLessThan(9_000);
    // Everything has ended that could still use the store: there is no lease.
    const store = secondConnection(app);
    expect(store.prepare('SELECT DISTINCT holder FROM relays').pluck().all()).toEqual([null]);
    store.close();
    await nextTurn();
    expect(faults()).toEqual([]);
    broker.resume();
    // Failed events are retried after a while.
    app.clock.advance(second);
    const again = await TestApp.start({ EVENTS_URL: broker.url, DATA_DIR: app.dataDir }, app.clock);
    await vi.waitUntil(async () => new Set(await sequences(broker)).size === 5, { timeout: 10_000 });
    await again.stop();
  });
});

describe('SIGTERM (RUN-7)', () => {
  it('ends streams and exits with 0, the backlog sent', async () => {
    ensureServerIsBuilt();
    const broker = await NatsServer.begin();
    await withDirectory(async (directory) => {
      const environment = { DATA_DIR: directory, EVENTS_URL: broker.url };
      const server = await ServerProcess.start(environment);
      const token = await server.setUp();
      const response = await fetch(`${server.url}/api/v1/events`, {
        headers: { accept: 'text/event-stream', authorization: `Bearer ${token}` },
      });
      const text = response.text();
      addMany(directory, 500);
      const { code, signal } = await server.end('SIGTERM');
      expect([code, signal]).toEqual([0, null]);
      expect(await text).toMatch(/^retry: 3000\n\n/);
      const messages = await broker.messages('entity-events');
      expect(messages.map(({ body }) => JSON.parse(body).sequence)).toEqual(upTo(502));
      const [relay] = readStore(directory, "SELECT * FROM relays WHERE name = 'entity-events/broker'");
      expect(relay).toMatchObject({ position: 502, holder: null });
    });
    await broker.close();
  });
});
