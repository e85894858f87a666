import { once } from 'node:events';
import type { Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { currentCounts } from '../../src/base/keyed-counter.ts';
import { holdNext } from '../support/gates.ts';
import { addManyUsers } from '../support/many-users.ts';
import { RawConnection, requestText } from '../support/raw-http.ts';
import { type Client, TestApp } from '../support/test-app.ts';

const mebibyte = 1_048_576;
/** As many as use up what one user, or one network, may have on its way: 16 MiB. */
const rounds = 17;

/** A request with a large body, but for the end of it that is left out. */
function large(path: string, credential: string | null, leftOut = 0): Buffer {
  const head = [`POST /api/v1${path} HTTP/1.1`, 'Host: x', 'Content-Type: application/json'];
  if (credential !== null) head.push(`Authorization: Bearer ${credential}`);
  const announced = [...head, `Content-Length: ${mebibyte}`, '', ''].join('\r\n');
  const body = Buffer.alloc(mebibyte - leftOut, 0x20);
  if (leftOut === 0) body.write(`{"userIds":["${'a'.repeat(24)}"],"name":"Late ${Math.random()}","type":"custom"}`, 0);
  return Buffer.concat([Buffer.from(announced), body]);
}

describe('what a request takes is given back, wherever it is broken off (HTTP-32)', () => {
  let app: TestApp;
  let admin: Client;
  let before: ReadonlyMap<string, number>;
  /** Open sockets of the service. */
  const served = new Set<Socket>();

  beforeAll(async () => {
    app = await TestApp.start();
    app.app.server.on('connection', (socket: Socket) => {
      served.add(socket);
      socket.once('close', () => served.delete(socket));
    });
    admin = await app.setUp();
    await addManyUsers(app, 2_000);
    before = new Map(currentCounts());
  });
  afterAll(() => app.close());

  /** Returns the counters that exceed their value at the beginning, by kind. */
  function held(): Readonly<Record<string, number>> {
    const more = [...currentCounts()].map(([what, amount]) => [what, amount - (before.get(what) ?? 0)] as const);
    return Object.fromEntries(more.filter(([, amount]) => amount !== 0));
  }

  /** Waits until nothing is held, and sees that the same caller is let in again. */
  async function expectAllBack(): Promise<void> {
    await vi.waitFor(() => expect(held()).toEqual({}), { timeout: 10_000, interval: 5 });
    const body = { userIds: Array.from({ length: 1_000 }, () => 'a'.repeat(24)) };
    expect((await admin.post('/users/by-ids', body)).status).toBe(200);
  }

  /** Sends bytes and waits until a number of requests in them were read. */
  async function send(bytes: Uint8Array, requests = 1): Promise<RawConnection> {
    let seen = 0;
    const count = () => {
      seen += 1;
    };
    app.app.server.on('request', count);
    const connection = new RawConnection(app).send(bytes);
    await vi.waitUntil(() => seen >= requests, { interval: 1 });
    app.app.server.off('request', count);
    return connection;
  }

  /** Resets a connection and waits until the service has seen it. */
  async function hangUp({ socket }: RawConnection): Promise<void> {
    const { localPort } = socket;
    socket.resetAndDestroy();
    await vi.waitUntil(() => ![...served].some(({ remotePort }) => remotePort === localPort), { interval: 1 });
  }

  it('before its body: the caller leaves while the credential is looked up', async () => {
    const { db } = app.services;
    const { refreshVersion: freshen } = db;
    let open = () => {};
    const opened = new Promise<void>((resolve) => {
      open = resolve;
    });
    db.refreshVersion = () => opened.then(() => freshen() ?? undefined);
    // Restored whatever comes, for the tests after this one.
    onTestFinished(() => {
      db.refreshVersion = freshen;
      open();
    });
    for (let round = 0; round < rounds; round += 1) {
      // With none of its body sent, the service reads on, and sees the end before it looks for the body.
      await hangUp(await send(large('/users/by-ids', admin.credential, mebibyte)));
    }
    expect(held()).toEqual({});
    db.refreshVersion = freshen;
    open();
    await expectAllBack();
  });

  it('in its body, with a credential and without', async () => {
    const begun: RawConnection[] = [];
    for (let round = 0; round < 16; round += 1) {
      begun.push(await send(large('/users/by-ids', admin.credential, 1)));
      begun.push(await send(large('/userAccount/authenticate', null, 1)));
    }
    await vi.waitFor(() => expect(held()).toEqual({ 'body bytes': 32 * mebibyte }));
    for (const connection of begun) await hangUp(connection);
    await expectAllBack();
  });

  it('while its handler waits: it keeps the body until the handler has ended', async () => {
    const gate = holdNext(app.services, 'reauthorize');
    const connection = await send(large('/userGroups', admin.credential));
    await gate.arrived;
    await hangUp(connection);
    expect(held()).toEqual({ 'body bytes': mebibyte });
    gate.open();
    await expectAllBack();
  });

  it('while it waits in a queue', async () => {
    const { pictures } = app.services;
    const { compress } = pictures;
    let waiting = 0;
    pictures.compress = (...given) => {
      waiting += 1;
      return compress(...given);
    };
    const form = Buffer.concat([
      Buffer.from('--edge\r\ncontent-disposition: form-data; name="file"; filename="a.png"\r\n\r\n'),
      Buffer.alloc(100_000, 0x20),
      Buffer.from('\r\n--edge--\r\n'),
    ]);
    const headers = [`Authorization: Bearer ${admin.credential}`, 'Content-Type: multipart/form-data; boundary=edge'];
    const head = requestText('PUT /api/v1/users/dp HTTP/1.1', [
      'Host: x',
      ...headers,
      `Content-Length: ${form.length}`,
    ]);
    const connections = Array.from({ length: 10 }, () => new RawConnection(app).send(head).send(form));
    await vi.waitUntil(() => waiting === 10, { interval: 1 });
    for (const connection of connections) await hangUp(connection);
    pictures.compress = compress;
    await expectAllBack();
    expect(held()).toEqual({});
  });

  it.each(['/users', '/audit/export', '/events'])('while %s is streamed, read or not', async (path) => {
    const accept = path === '/events' ? ['Accept: text/event-stream'] : [];
    const text = requestText(`GET /api/v1${path} HTTP/1.1`, [
      'Host: x',
      `Authorization: Bearer ${admin.credential}`,
      ...accept,
    ]);
    for (let round = 0; round < 6; round += 1) {
      const connection = new RawConnection(app);
      if (round % 2 === 0) connection.socket.pause();
      connection.send(text);
      await once(app.app.server, 'request');
      if (round % 3 === 0)
        await vi.waitUntil(() => Object.keys(held()).length > 0 || connection.outcome.text !== '', { interval: 1 });
      await hangUp(connection);
    }
    await expectAllBack();
    expect(held()).toEqual({});
  });

  it('behind another answer on its connection, which never comes to its end', async () => {
    const headers = ['Host: x', `Authorization: Bearer ${admin.credential}`];
    const stream = requestText('GET /api/v1/events HTTP/1.1', [...headers, 'Accept: text/event-stream']);
    const behind = [
      large('/users/by-ids', admin.credential),
      Buffer.from(stream),
      // Last: of what follows a long answer that waits, the service reads nothing.
      Buffer.from(requestText('GET /api/v1/users HTTP/1.1', headers)),
    ];
    const taken = { 'body bytes': mebibyte, streams: 2, lists: 1 };
    for (let round = 0; round < 2; round += 1) {
      const connection = await send(Buffer.concat([Buffer.from(stream), ...behind]), behind.length + 1);
      await vi.waitFor(() => expect(held()).toEqual(taken), { interval: 1 });
      // What the service sees once it writes to a peer that has left: until then it may have stopped reading.
      for (const socket of served) if (socket.remotePort === connection.socket.localPort) socket.destroy();
      await vi.waitFor(() => expect(held()).toEqual({}), { interval: 1 });
    }
    await expectAllBack();
  });

  it('nor is anything kept of requests that are answered, refused or broken', async () => {
    const body = { userIds: Array.from({ length: 1_000 }, () => 'a'.repeat(24)) };
    for (let round = 0; round < 2; round += 1) {
      expect((await admin.post('/users/by-ids', body)).status).toBe(200);
      expect((await app.anonymous.post('/users/by-ids', body)).status).toBe(401);
      expect((await admin.post('/users/by-ids', { userIds: 'x'.repeat(50_000) })).status).toBe(400);
      expect((await admin.post('/users/by-ids', undefined, { raw: `{${' '.repeat(50_000)}` })).status).toBe(415);
    }
    await expectAllBack();
  });
});
