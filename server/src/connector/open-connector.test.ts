import { once } from 'node:events';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { FakeBackend, responding, responseBytes, silent } from '../../test/support/fake-backend.ts';
import { TestClock } from '../../test/support/test-clock.ts';
import { second } from '../base/clock.ts';
import { ApiError } from '../base/errors.ts';
import { Secret } from '../base/secret.ts';
import type { Connector, ConnectorRequest } from './connector.ts';
import { openConnector } from './open-connector.ts';

const megabyte = 1_048_576;
const path = '/api/v1/entity/user/list';

let backend: FakeBackend;
let clock: TestClock;
let connector: Connector;

beforeEach(async () => {
  backend = await FakeBackend.start();
  clock = new TestClock();
  connector = openConnector({ url: backend.url, clock });
});
afterEach(async () => {
  await connector.close();
  await backend.stop();
});

/** A client with less time than in earnest. */
async function reopen(options: { url?: string; timeoutMs?: number }): Promise<void> {
  await connector.close();
  connector = openConnector({ url: backend.url, clock, ...options });
}

function exchange(given: Partial<ConnectorRequest> = {}) {
  return connector.exchange({
    method: 'GET',
    path,
    credential: new Secret('aaa.bbb.ccc'),
    requestId: 'request-7',
    clientName: 'latchkey',
    ...given,
  });
}

/** Returns the error of an exchange that does not succeed. */
async function apiError(given: Partial<ConnectorRequest> = {}) {
  const outcome = await exchange(given).then(
    (response) => `answered ${response.status}`,
    (error: unknown) => error,
  );
  if (!(outcome instanceof ApiError)) throw new Error(`not refused: ${String(outcome)}`);
  const { errorName: name, status, headers } = outcome;
  return { name, status, retryAfter: headers['retry-after'] };
}

/** A connection is used again one turn of the event loop after its answer at the earliest. */
const turn = () => setImmediate();

const unavailable = { name: 'connectorUnavailable', status: 503 };
const badResponse = { name: 'connectorBadAnswer', status: 502 };
const tooSlow = { name: 'connectorTimeout', status: 504 };

describe('what is sent (TEAM-4 to TEAM-6)', () => {
  const host = () => `host: 127.0.0.1:${backend.port}`;
  const fixed = [
    'connection: keep-alive',
    'authorization: Bearer aaa.bbb.ccc',
    'content-type: application/json',
    'x-request-id: request-7',
    'client-name: latchkey',
    'accept-encoding: identity',
  ];

  it('is the path, the encoded query in its order, and exactly these headers', async () => {
    await exchange({ query: { page: '1', limit: '20', search: 'a&admin=1#?/%2e' } });
    expect(backend.requests).toEqual([
      {
        line: `GET ${path}?page=1&limit=20&search=a%26admin%3D1%23%3F%2F%252e HTTP/1.1`,
        headers: [host(), ...fixed],
        body: '',
      },
    ]);
  });

  it('is a JSON body and its length, where there is one', async () => {
    await exchange({ method: 'POST', path: '/api/v1/entity/team', body: { name: 'Zoë\r\nx: y' } });
    await exchange({ method: 'PUT', path: '/api/v1/entity/team/7' });
    await exchange({ method: 'DELETE', path: '/api/v1/entity/team/7' });
    const body = JSON.stringify({ name: 'Zoë\r\nx: y' });
    expect(backend.requests.map(({ line, headers }) => [line, ...headers])).toEqual([
      ['POST /api/v1/entity/team HTTP/1.1', host(), ...fixed, `content-length: ${Buffer.byteLength(body)}`],
      ['PUT /api/v1/entity/team/7 HTTP/1.1', host(), ...fixed, 'content-length: 0'],
      ['DELETE /api/v1/entity/team/7 HTTP/1.1', host(), ...fixed],
    ]);
    expect(Buffer.from(backend.requests[0]?.body ?? '', 'latin1').toString()).toBe(body);
  });

  it.each([
    ['a CR LF in the query', { query: { search: 'a\r\nX-Is-Admin: 1\r\n\r\nGET /admin HTTP/1.1' } }],
    ['a name of a parameter that is none', { query: { 'a=1&b\r\nc: d': '' } }],
  ])('keeps to one request with %s', async (_, given) => {
    await exchange(given);
    expect(backend.requests).toHaveLength(1);
    expect(backend.requests[0]?.headers).toEqual([host(), ...fixed]);
    expect(backend.requests[0]?.line).toMatch(/^GET \/api\/v1\/entity\/user\/list\?[\w%.=-]+ HTTP\/1\.1$/);
  });

  it.each([
    '/../admin',
    '/a/..',
    '/%2e%2e/admin',
    '/a%2Fb',
    '/a%5cb',
    '//evil.example/x',
    '/a?b',
    '/a#b',
    '/a b',
    '/a\r\nb: c',
    '/',
  ])('never is the path %j', async (given) => {
    await expect(exchange({ path: given as '/' })).rejects.toThrow('not a path of the connector backend');
    expect(backend.connections).toBe(0);
  });

  it.each([{ requestId: 'a\r\nb: c' }, { clientName: 'a\r\nb: c' }, { credential: new Secret('a\r\nb: c') }])(
    'never is a header that breaks its line: a fault of ours, not of the backend (%#)',
    async (given) => {
      await expect(exchange(given)).rejects.not.toBeInstanceOf(ApiError);
      expect(backend.requests).toEqual([]);
    },
  );

  it('goes below the path of the configured address', async () => {
    await reopen({ url: `${backend.url}/teams/v2` });
    await exchange();
    expect(backend.requests[0]?.line).toBe(`GET /teams/v2${path} HTTP/1.1`);
  });
});

describe('what is taken for an answer', () => {
  it('is status, type and body', async () => {
    backend.behave = responding(201, '{"a":1}', ['Content-Type: text/html']);
    expect(await exchange()).toEqual({ status: 201, contentType: 'text/html', body: Buffer.from('{"a":1}') });
    backend.behave = (socket) => void socket.write('HTTP/1.1 204 None\r\n\r\n');
    expect(await exchange()).toEqual({ status: 204, contentType: undefined, body: Buffer.alloc(0) });
  });

  it('comes after informational ones', async () => {
    backend.behave = (socket) => {
      socket.write('HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n');
      socket.write(responseBytes(200, '{"a":1}'));
    };
    expect(await exchange()).toMatchObject({ status: 200, body: Buffer.from('{"a":1}') });
  });

  it.each([301, 302, 303, 307, 308])('%i: a redirect is an answer like any other (TEAM-8)', async (status) => {
    const elsewhere = await FakeBackend.start();
    backend.behave = responding(status, '{"secret":1}', [`location: ${elsewhere.url}/`]);
    expect(await exchange()).toEqual({ status, contentType: undefined, body: Buffer.alloc(0) });
    expect([elsewhere.connections, backend.requests.length]).toEqual([0, 1]);
    await elsewhere.stop();
  });

  it('is a no as soon as its head is there, however much or little of the body follows', async () => {
    for (const status of [404, 500]) {
      backend.behave = (socket) => void socket.write(`HTTP/1.1 ${status} No\r\ncontent-length: ${2 ** 30}\r\n\r\n{`);
      expect(await exchange()).toEqual({ status, contentType: undefined, body: Buffer.alloc(0) });
    }
  });

  it('keeps the connection after a short no', async () => {
    backend.behave = responding(404, 'x'.repeat(1_000));
    await exchange();
    await turn();
    await exchange();
    expect(backend.connections).toBe(1);
  });

  it('ends the connection of a no that goes on and on', async () => {
    let sent = 0;
    backend.behave = (socket) => {
      socket.write('HTTP/1.1 500 No\r\ntransfer-encoding: chunked\r\n\r\n');
      const more = (error?: Error | null) => {
        sent += 0x8000;
        if (!error && !socket.destroyed) socket.write(`8000\r\n${'x'.repeat(0x8000)}\r\n`, more);
      };
      more();
    };
    expect((await exchange()).status).toBe(500);
    await vi.waitFor(() => expect(backend.asked.size).toBe(0));
    expect(sent).toBeLessThan(8 * megabyte);
  });
});

describe('502: bad answers (TEAM-11)', () => {
  it('10 MB are taken, a byte more is not, announced or not', async () => {
    backend.behave = responding(200, Buffer.alloc(10 * megabyte, ' '));
    expect((await exchange()).body).toHaveLength(10 * megabyte);
    backend.behave = responding(200, Buffer.alloc(10 * megabyte + 1, ' '));
    expect(await apiError()).toMatchObject(badResponse);
    backend.behave = (socket) => {
      socket.write('HTTP/1.1 200 OK\r\n\r\n');
      socket.end(Buffer.alloc(10 * megabyte + 1, ' '));
    };
    expect(await apiError()).toMatchObject(badResponse);
  });

  it('a gigabyte is refused by its announcement, and an endless body after 10 MB', async () => {
    backend.behave = (socket) => void socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${2 ** 30}\r\n\r\n`);
    expect(await apiError()).toMatchObject(badResponse);
    let sent = 0;
    const chunk = Buffer.alloc(megabyte, ' ');
    backend.behave = (socket) => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
      const more = (error?: Error | null) => {
        if (error || socket.destroyed || sent > 2 ** 30) return;
        sent += chunk.length;
        socket.write('100000\r\n');
        socket.write(chunk);
        socket.write('\r\n', more);
      };
      more();
    };
    expect(await apiError()).toMatchObject(badResponse);
    await vi.waitFor(() => expect(backend.asked.size).toBe(0));
    expect(sent).toBeLessThan(40 * megabyte);
  });

  it('a compressed bomb is not even read, let alone inflated', async () => {
    const bomb = gzipSync(Buffer.alloc(64 * megabyte, '0'));
    for (const encoding of ['gzip', 'GZIP', 'identity, gzip', 'br', 'deflate', 'zstd', 'x']) {
      backend.behave = responding(200, bomb, [`Content-Encoding: ${encoding}`]);
      expect(await apiError()).toMatchObject(badResponse);
    }
    backend.behave = responding(200, '{}', ['content-encoding: identity']);
    expect((await exchange()).status).toBe(200);
  });

  it.each([
    ['nonsense', 'nonsense\r\n\r\n'],
    ['another protocol', 'SSH-2.0-OpenSSH_9.2\r\n'],
    ['broken headers', 'HTTP/1.1 200 OK\r\nno colon here\r\n\r\n'],
    ['headers without end', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(100_000)}\r\n\r\n`],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}'],
    ['a switch of protocols', 'HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n'],
    ['a bad chunk', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n'],
  ])('%s', async (_, bytes) => {
    backend.behave = (socket) => void socket.write(bytes);
    expect(await apiError()).toMatchObject(badResponse);
    expect(backend.requests).toHaveLength(1);
  });

  it.each([
    ['in its first line', 'HTTP/1.1 2'],
    ['in its headers', 'HTTP/1.1 200 OK\r\ncontent-le'],
    ['before its body', 'HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n'],
    ['in its body', 'HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n{"a"'],
    ['between its chunks', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n'],
  ])('one that breaks off %s, closed or reset, is not asked for again', async (_, bytes) => {
    backend.behave = (socket) => void socket.end(bytes);
    expect(await apiError()).toMatchObject(badResponse);
    backend.behave = (socket) => void socket.write(bytes, () => void turn().then(() => socket.resetAndDestroy()));
    expect(await apiError()).toMatchObject(badResponse);
    expect(backend.requests).toHaveLength(2);
  });
});

describe('503 and retries (TEAM-8, TEAM-11)', () => {
  it('refused: a GET is tried three times, then 503 with Retry-After', async () => {
    await backend.stop();
    expect(await apiError()).toEqual({ ...unavailable, retryAfter: '5' });
  });

  it('refused: whatever changes something is tried once', async () => {
    for (const method of ['POST', 'PUT', 'DELETE'] as const) {
      expect((await exchange({ method })).status).toBe(200);
      backend.behave = (socket) => void socket.resetAndDestroy();
      expect(await apiError({ method })).toMatchObject(unavailable);
      backend.behave = responding(200);
    }
    expect(backend.requests).toHaveLength(6);
  });

  it.each([
    ['reset', (socket: Socket) => void socket.resetAndDestroy()],
    ['closed', (socket: Socket) => void socket.end()],
  ])('%s before an answer: a GET is tried at most twice again', async (_, behave) => {
    backend.behave = behave;
    expect(await apiError()).toMatchObject(unavailable);
    expect(backend.requests).toHaveLength(3);
    backend.requests.length = 0;
    backend.behave = (socket, request) =>
      backend.requests.length < 3 ? behave(socket) : responding(200)(socket, request);
    expect((await exchange()).status).toBe(200);
    expect(backend.requests).toHaveLength(3);
  });

  it('a GET reaches a backend that comes up between two tries', async () => {
    const { port } = backend;
    await backend.stop();
    const response = exchange();
    await vi.waitFor(() => backend.listen(port));
    expect((await response).status).toBe(200);
  });

  it('TLS towards who speaks none', async () => {
    const plain = createServer((socket) => {
      socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    });
    await once(plain.listen(0, '127.0.0.1'), 'listening');
    await reopen({ url: `https://127.0.0.1:${(plain.address() as AddressInfo).port}` });
    expect(await apiError()).toMatchObject(unavailable);
    plain.close();
  });

  it('a connection that the backend closed between requests costs nothing, and a GET that met its end is sent again', async () => {
    await exchange();
    const [first] = backend.sockets;
    if (!first) throw new Error('no connection');
    first.end();
    await once(first, 'close');
    expect((await exchange()).status).toBe(200);
    await turn();
    // As above, but the end crosses the request on its way.
    const used = new Set(backend.sockets);
    backend.behave = (socket, request) => (used.has(socket) ? void socket.destroy() : responding(200)(socket, request));
    expect((await exchange()).status).toBe(200);
    expect([backend.connections, backend.requests.length]).toEqual([3, 4]);
  });
});

describe('504: the whole exchange has its time (TEAM-7)', () => {
  beforeEach(() => reopen({ timeoutMs: 300 }));

  it('a black hole, which is asked once and left', async () => {
    backend.behave = silent;
    expect(await apiError()).toMatchObject(tooSlow);
    await vi.waitFor(() => expect(backend.asked.size).toBe(0));
    expect(backend.requests).toHaveLength(1);
  });

  it.each([
    ['headers', 'HTTP/1.1 200 OK\r\nx: '],
    ['a body', 'HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n'],
    ['informational answers', 'HTTP/1.1 102 Processing\r\n\r\n'],
  ])('%s, drop by drop', async (_, head) => {
    backend.behave = (socket) => {
      socket.write(head);
      const drip = setInterval(() => socket.write(head.includes('102') ? head : ' '), 20);
      socket.once('close', () => clearInterval(drip));
    };
    expect(await apiError()).toMatchObject(tooSlow);
    await vi.waitFor(() => expect(backend.asked.size).toBe(0));
    expect(backend.requests).toHaveLength(1);
  });

  it('tries and pauses are within it', async () => {
    backend.behave = (socket) => (backend.requests.length === 1 ? void socket.destroy() : undefined);
    expect(await apiError()).toMatchObject(tooSlow);
    expect(backend.requests).toHaveLength(2);
  });

  it('the body of a no that drips does not hold its connection for longer', async () => {
    backend.behave = (socket) => void socket.write('HTTP/1.1 404 No\r\ncontent-length: 9\r\n\r\n{');
    expect((await exchange()).status).toBe(404);
    await vi.waitFor(() => expect(backend.asked.size).toBe(0));
  });
});

describe('many at once (R5, TEAM-30)', () => {
  it('200 requests to a backend that hangs: 32 connections, 64 that wait, the rest 503 at once; then all is well', async () => {
    backend.behave = silent;
    const held = Array.from({ length: 96 }, () => exchange());
    for (const one of held) one.catch(() => {});
    const refused = await Promise.all(Array.from({ length: 104 }, () => apiError()));
    expect(new Set(refused.map((one) => JSON.stringify(one)))).toEqual(
      new Set([JSON.stringify({ name: 'overloaded', status: 503, retryAfter: '1' })]),
    );
    await vi.waitFor(() => expect(backend.requests).toHaveLength(32));
    expect(backend.connections).toBe(32);
    backend.behave = responding(200);
    for (const socket of backend.sockets) socket.write(responseBytes(200, '{}'));
    const responses = await Promise.all(held);
    expect(responses.map(({ status }) => status)).toEqual(Array.from({ length: 96 }, () => 200));
    expect(backend.connections).toBe(32);
    expect(backend.requests).toHaveLength(96);
  });

  it('one sender has 8 of them, under way or waiting; others go on (TEAM-30)', async () => {
    backend.behave = silent;
    const held = Array.from({ length: 8 }, () => exchange({ sender: 'ann' }));
    for (const one of held) one.catch(() => {});
    await vi.waitFor(() => expect(backend.requests).toHaveLength(8));
    expect(await apiError({ sender: 'ann' })).toEqual({ name: 'tooManyRequests', status: 429, retryAfter: '1' });
    backend.behave = responding(200);
    expect((await exchange({ sender: 'bob' })).status).toBe(200);
    for (const socket of backend.sockets) socket.write(responseBytes(200, '{}'));
    await Promise.all(held);
    await vi.waitFor(async () => expect((await exchange({ sender: 'ann' })).status).toBe(200));
  });

  it('those that wait for a connection have no more time than others, and make room when it is over', async () => {
    await reopen({ timeoutMs: 300 });
    backend.behave = silent;
    const all = await Promise.all(Array.from({ length: 96 }, () => apiError()));
    const names = all.map(({ name }) => name);
    // Those that never had a connection say nothing of the backend; few got one just before their time was over.
    const late = names.filter((name) => name === 'connectorTimeout').length;
    expect(late).toBeGreaterThanOrEqual(32);
    expect(late).toBeLessThan(64);
    expect(names.filter((name) => name === 'overloaded')).toHaveLength(96 - late);
    // These have no reader any more.
    await vi.waitFor(() => expect(backend.asked.size).toBe(0));
    clock.advance(6 * second);
    backend.behave = responding(200);
    expect((await exchange()).status).toBe(200);
    const many = await Promise.all(Array.from({ length: 96 }, () => exchange()));
    expect(new Set(many.map(({ status }) => status))).toEqual(new Set([200]));
  });
});

describe('the circuit breaker (TEAM-30)', () => {
  it('counts a whole exchange once, and what is too slow as well', async () => {
    await reopen({ timeoutMs: 50 });
    backend.behave = (socket) => void socket.resetAndDestroy();
    for (let count = 0; count < 2; count += 1) await apiError({ method: 'PUT' });
    backend.behave = silent;
    for (let count = 0; count < 3; count += 1) expect(await apiError()).toMatchObject(tooSlow);
    const asked = backend.requests.length;
    expect(await apiError()).toMatchObject(unavailable);
    expect(backend.requests).toHaveLength(asked);
  });

  it('takes any answer, a bad one too, for a sign of life', async () => {
    const lost = (socket: Socket) => void socket.resetAndDestroy();
    for (const alive of [responding(500), (socket: Socket) => void socket.end('nonsense')]) {
      backend.behave = lost;
      for (let count = 0; count < 4; count += 1) await apiError({ method: 'POST' });
      backend.behave = alive;
      await exchange({ method: 'POST' }).catch(() => {});
    }
    backend.behave = lost;
    for (let count = 0; count < 4; count += 1) await apiError({ method: 'POST' });
    backend.behave = responding(200);
    expect((await exchange()).status).toBe(200);
  });

  it('leaves a backend alone after five failures in a row, then tries once', async () => {
    backend.behave = (socket) => void socket.resetAndDestroy();
    const fail = () => apiError({ method: 'POST' });
    for (let count = 0; count < 5; count += 1) expect(await fail()).toEqual({ ...unavailable, retryAfter: '5' });
    expect(await fail()).toEqual({ ...unavailable, retryAfter: '5' });
    clock.advance(3 * second);
    expect(await fail()).toEqual({ ...unavailable, retryAfter: '2' });
    expect(backend.requests).toHaveLength(5);
    clock.advance(2 * second);
    expect(await fail()).toMatchObject(unavailable);
    expect(await fail()).toEqual({ ...unavailable, retryAfter: '5' });
    expect(backend.requests).toHaveLength(6);
    clock.advance(5 * second);
    backend.behave = responding(404);
    expect((await exchange()).status).toBe(404);
    backend.behave = responding(200);
    expect((await exchange()).status).toBe(200);
  });
});

it('close ends all connections, and what is under way', async () => {
  backend.behave = silent;
  const pending = apiError({ method: 'POST' });
  await vi.waitFor(() => expect(backend.requests).toHaveLength(1));
  await connector.close();
  expect(await pending).toMatchObject(unavailable);
  await vi.waitFor(() => expect(backend.sockets.size).toBe(0));
});
