import { once } from 'node:events';
import type { Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { RawConnection, requestText } from '../support/raw-http.ts';
import { type Client, TestApp } from '../support/test-app.ts';

const create = 'POST /api/v1/users HTTP/1.1';
/** A tenth of the limits that hold in use, which are asserted below: that they fire is seen sooner so. */
const headersMs = 1_000;
const bodyMs = 3_000;
/** Milliseconds that a busy machine may take to react. */
const patienceMs = 20_000;
/** Timers and the clock that connections are judged by round differently. */
const roundingMs = 50;

/** Sends a little now and then until the connection closes. */
async function drip(connection: RawConnection, bytes: string): Promise<void> {
  while (!(await connection.closed(100)).closed) connection.send(bytes);
}

describe('H3: slow and idle peers (HTTP-28)', () => {
  let app: TestApp;
  let admin: Client;
  const opened: RawConnection[] = [];

  beforeAll(async () => {
    app = await TestApp.start();
    app.app.server.headersTimeout = headersMs;
    app.app.server.requestTimeout = bodyMs;
    admin = await app.setUp();
  });
  afterAll(async () => {
    for (const connection of opened) connection.destroy();
    await app.close();
  });

  function connect(text = ''): RawConnection {
    const connection = new RawConnection(app).send(text);
    opened.push(connection);
    return connection;
  }

  const headers = (...more: string[]) => ['Host: x', `Authorization: Bearer ${admin.credential}`, ...more];
  const body = () => headers('Content-Type: application/json', 'Content-Length: 500');

  it.concurrent.each([
    ['nothing at all', () => '', ''],
    ['half a line', () => 'GET /api', ''],
    ['half the headers', () => 'GET / HTTP/1.1\r\nHost: x\r\n', ''],
    ['headers byte by byte', () => 'GET / HTTP/1.1\r\nHost: x\r\nX-A: ', 'a'],
    ['a second request that stops', () => `${requestText('GET /api/v1/org/exists HTTP/1.1')}GET / HT`, ''],
  ])('408 and closed once the headers took too long: %s', async (_, begin, more) => {
    const connection = connect(begin());
    if (more) await drip(connection, more);
    const { answers: responses, closed, ms } = await connection.closed(patienceMs);
    expect(closed).toBe(true);
    expect(responses.at(-1)?.status).toBe(408);
    expect(responses.at(-1)?.body.error.code).toBe('REQUEST_TIMEOUT');
    expect(ms).toBeGreaterThan(headersMs - roundingMs);
  });

  it.concurrent.each([
    { name: 'stops', begin: () => requestText(create, body(), '{'), more: '', statuses: [408] },
    { name: 'comes byte by byte', begin: () => requestText(create, body(), '{'), more: ' ', statuses: [408] },
    {
      name: 'comes in small chunks without end',
      begin: () => requestText(create, headers('Content-Type: application/json', 'Transfer-Encoding: chunked')),
      more: '1\r\n \r\n',
      statuses: [408],
    },
  ])('closed once it took too long: a body that $name', async ({ begin, more, statuses }) => {
    const connection = connect(begin());
    if (more) await drip(connection, more);
    const { answers: responses, closed, ms } = await connection.closed(patienceMs);
    expect(closed).toBe(true);
    expect(responses.map(({ status }) => status)).toEqual(statuses);
    expect(ms).toBeGreaterThan(bodyMs - roundingMs);
  });

  it.concurrent('closed soon after a refusal, while the body goes on (FIT-44)', async () => {
    const connection = connect(requestText(create, ['Host: x', 'Content-Length: 500'], '{'));
    await drip(connection, ' ');
    const { answers: responses, closed, ms } = await connection.closed(patienceMs);
    expect(closed).toBe(true);
    expect(responses.map(({ status }) => status)).toEqual([401]);
    expect(ms).toBeLessThan(bodyMs - roundingMs);
  });

  it.concurrent('1,000 idle connections harm no one, and are closed', async () => {
    const idle = Array.from({ length: 1_000 }, () => connect());
    await Promise.all(idle.map(async ({ socket }) => socket.readyState === 'open' || once(socket, 'connect')));
    const startedMs = performance.now();
    for (let round = 0; round < 20; round += 1) {
      expect((await admin.get('/users')).status).toBe(200);
      expect((await admin.post('/users', { fullName: 'X', email: `idle${round}@example.com` })).status).toBe(201);
    }
    expect(performance.now() - startedMs).toBeLessThan(5_000);
    const outcomes = await Promise.all(idle.map((connection) => connection.closed(patienceMs)));
    expect(outcomes.filter(({ closed }) => !closed)).toEqual([]);
  });
});

describe('H3: idle after an answer, and readers that do not read (HTTP-28)', () => {
  let app: TestApp;

  beforeEach(async () => {
    app = await TestApp.start();
  });
  afterEach(() => app.close());

  it('the limit is 75 s', () => {
    const { server } = app.app;
    expect([server.keepAliveTimeout, server.timeout]).toEqual([75_000, 75_000]);
    expect([server.headersTimeout, server.requestTimeout]).toEqual([10_000, 30_000]);
  });

  it('an idle connection is closed when its time is over', async () => {
    app.app.server.keepAliveTimeout = 500;
    const connection = new RawConnection(app).send(requestText('GET /api/v1/org/exists HTTP/1.1'));
    const { closed, answers: responses, ms } = await connection.closed(5_000);
    expect([closed, responses.length]).toEqual([true, 1]);
    expect(ms).toBeGreaterThan(400);
  });

  it('a peer that asks for much and reads nothing is cut off, while others are served', async () => {
    const { server } = app.app;
    server.timeout = 1_000;
    const accepted = once(server, 'connection') as Promise<[Socket]>;
    const connection = new RawConnection(app);
    connection.socket.pause();
    const [theirs] = await accepted;
    const heldBefore = process.memoryUsage().arrayBuffers;
    connection.send(requestText('GET /docs/swagger-ui-bundle.js HTTP/1.1').repeat(1_000));
    await connection.until(() => false, 300);
    expect((await app.anonymous.get('/org/exists')).status).toBe(200);
    expect([theirs.destroyed, theirs.bytesWritten > 0]).toEqual([false, true]);
    expect(process.memoryUsage().arrayBuffers - heldBefore).toBeLessThan(100_000_000);
    await vi.waitUntil(() => theirs.destroyed);
    connection.destroy();
  });
});
