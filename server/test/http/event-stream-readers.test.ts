import { once } from 'node:events';
import type { Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { minute } from '../../src/base/clock.ts';
import { commitEvents } from '../support/committed-events.ts';
import { addEvents, EventReader } from '../support/event-reader.ts';
import { RawConnection, requestText } from '../support/raw-http.ts';
import { secondConnection } from '../support/second-connection.ts';
import { issuedTo, registerService } from '../support/service-clients.ts';
import { watchStatements } from '../support/statement-watch.ts';
import { type Client, TestApp } from '../support/test-app.ts';

const each = 20;

let app: TestApp;
let admin: Client;
const readers: EventReader[] = [];
const connections: RawConnection[] = [];

beforeEach(async () => {
  app = await TestApp.start();
  admin = await app.setUp();
});
afterEach(async () => {
  for (const connection of connections.splice(0)) connection.destroy();
  await Promise.all(readers.splice(0).map((reader) => reader.leave()));
  await app.close();
});

async function open(client: Client, headers: Readonly<Record<string, string>> = {}): Promise<EventReader> {
  const reader = await EventReader.open(app, client, { headers });
  readers.push(reader);
  return reader;
}

const openMany = (client: Client, count = each) => Promise.all(Array.from({ length: count }, () => open(client)));
const statusesOf = (some: readonly EventReader[]) => some.map(({ status }) => status);

/** Adds events that are more than the operating system keeps for a reader. */
function addLarge(count: number): void {
  const store = secondConnection(app);
  commitEvents(store, count, JSON.stringify({ text: 'x'.repeat(20_000) }));
  store.close();
}

/** Opens a stream that is never read. */
async function openDeaf(): Promise<{ connection: RawConnection; served: Socket }> {
  const arrived = once(app.app.server, 'connection') as Promise<[Socket]>;
  const connection = new RawConnection(app);
  connections.push(connection);
  connection.socket.pause();
  const headers = ['Host: x', `Authorization: Bearer ${admin.credential}`, 'Accept: text/event-stream'];
  connection.send(requestText('GET /api/v1/events HTTP/1.1', headers));
  const [served] = await arrived;
  await vi.waitUntil(() => served.bytesWritten > 0);
  return { connection, served };
}

describe('anyone who does not read (EVENT-13)', () => {
  it('holds no one else up, and little is kept for them', async () => {
    let reads = 0;
    const stop = watchStatements((sql) => {
      if (/from "outbox" where "sequence" > .* limit/.test(sql)) reads += 1;
    });
    const { served } = await openDeaf();
    addLarge(2_500);
    await vi.waitUntil(() => served.writableNeedDrain, { timeout: 10_000 });
    // Waiting events are not consumed by anyone: the store gets no further queries.
    let seen = -1;
    await vi.waitUntil(
      () => {
        const isStill = seen === reads;
        seen = reads;
        return isStill;
      },
      { interval: 200, timeout: 10_000 },
    );
    stop();
    expect(reads).toBeLessThan(20);
    expect(served.writableLength).toBeLessThan(1_000_000);
    // Writers write, readers read, and another reader gets the whole log meanwhile.
    await addEvents(admin, 3);
    const other = await open(admin);
    await other.take(2_505);
    expect(other.ids.at(-1)).toBe(2_505);
    expect(served.destroyed).toBe(false);
  });

  it('is cut off by itself once nothing was taken for long, and its place is free again (HTTP-28)', async () => {
    // Longer than a stream is ever silent.
    expect(app.app.server.timeout).toBeGreaterThan(15_000);
    expect(app.app.server.timeout).toBeLessThan(2 * minute);
    const deaf: Socket[] = [];
    for (let opened = 0; opened < each; opened += 1) deaf.push((await openDeaf()).served);
    expect((await open(admin)).status).toBe(429);
    for (const socket of deaf) socket.setTimeout(300);
    addLarge(1_500);
    await vi.waitUntil(() => deaf.every((socket) => socket.destroyed), { timeout: 15_000 });
    await vi.waitUntil(async () => (await open(admin)).status === 200);
  });
});

describe('how many streams there are (EVENT-13)', () => {
  it('429: the 21st of one caller, by whatever credential, with when to try again', async () => {
    const token = await admin.token();
    expect(statusesOf([...(await openMany(admin, 12)), ...(await openMany(token, 8))])).toEqual(Array(each).fill(200));
    for (const client of [admin, token]) {
      const refused = await open(client);
      await refused.over();
      expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '10']);
      expect(refused.headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(JSON.parse(refused.text)).toMatchObject({ message: 'Too many requests: try again in 10 s' });
    }
    // Pages, other users and services are not affected.
    expect((await admin.get('/events')).status).toBe(200);
    const colleague = await app.member(admin, 'grace@example.com');
    await app.promote(colleague.userId);
    expect(statusesOf([await open(colleague), await open(app.service(['EVENTS_READ']))])).toEqual([200, 200]);
  });

  it('200: a place is free as soon as someone hangs up, and no stream is left over', async () => {
    const served = new Set<Socket>();
    app.app.server.on('request', ({ socket, url }) => {
      if (url?.endsWith('/events')) served.add(socket);
    });
    for (let round = 1; round <= 3; round += 1) {
      const all = await openMany(admin);
      expect(statusesOf(all)).toEqual(Array(each).fill(200));
      await Promise.all(all.map((reader) => reader.leave()));
      await vi.waitUntil(() => [...served].every(({ destroyed }) => destroyed), { timeout: 10_000 });
      expect(served.size).toBe(round * each);
    }
    expect(app.logLines.filter((line) => JSON.parse(line).level >= 50)).toEqual([]);
  });

  it('503: the 501st of all, each service counted for itself', async () => {
    const services: Client[] = [];
    for (let made = 0; made < 25; made += 1) {
      const service = await registerService(admin, ['EVENTS_READ'], `service ${made}`);
      services.push(await issuedTo(app, service));
    }
    const all = (await Promise.all(services.map((service) => openMany(service)))).flat();
    expect(statusesOf(all)).toEqual(Array(500).fill(200));
    expect((await open(admin)).status).toBe(503);
    await addEvents(admin, 1);
    await Promise.all(all.map((reader) => reader.take(3)));
    expect(new Set(all.map(({ ids }) => ids.join()))).toEqual(new Set(['1,2,3']));
    await all[0]?.leave();
    await vi.waitUntil(async () => (await open(admin)).status === 200);
  });
});
