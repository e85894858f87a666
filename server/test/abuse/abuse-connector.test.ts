import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { second } from '../../src/base/clock.ts';
import { type Behaviour, FakeBackend, responding, responseBytes, silent } from '../support/fake-backend.ts';
import { bareJwt } from '../support/jwt.ts';
import { requestText, sendRaw } from '../support/raw-http.ts';
import { type Client, type Json, TestApp, type TestResponse, type TokenClient } from '../support/test-app.ts';

const teamId = 'a'.repeat(24);
const megabyte = 1_048_576;

let backend: FakeBackend;
let app: TestApp;
let admin: Client;
let token: TokenClient;

beforeAll(async () => {
  backend = await FakeBackend.start();
  app = await TestApp.start({ CONNECTOR_BACKEND_URL: `${backend.url}/connector/` });
  admin = await app.setUp();
  token = await admin.token();
});
afterEach(() => {
  // Whatever failed before, the backend is asked again.
  app.clock.advance(6 * second);
  backend.behave = responding(200);
  backend.requests.length = 0;
});
afterAll(async () => {
  await app.close();
  await backend.stop();
});

const lists = ['/users/graph/list', '/users/teams/list', '/teams/user/teams'];

/** Returns the last request to the backend. */
function sent() {
  const request = backend.requests.at(-1);
  if (!request) throw new Error('the backend was not asked');
  return request;
}

function expectedHeaders(credential: string, given: { requestId: string; clientName?: string; length?: number }) {
  return [
    `host: 127.0.0.1:${backend.port}`,
    'connection: keep-alive',
    `authorization: Bearer ${bareJwt(credential)}`,
    'content-type: application/json',
    `x-request-id: ${given.requestId}`,
    `client-name: ${given.clientName ?? 'latchkey'}`,
    'accept-encoding: identity',
    ...(given.length === undefined ? [] : [`content-length: ${given.length}`]),
  ];
}

describe('C1: what reaches the backend', () => {
  const operations: [string, string, Json][] = [
    ['GET /users/graph/list', 'user/list', undefined],
    ['GET /users/teams/list', 'user/teams', undefined],
    ['GET /teams/user/teams', 'user/teams', undefined],
    ['POST /teams', 'team', { name: 'Research' }],
    [`GET /teams/${teamId}`, `team/${teamId}`, undefined],
    [`PUT /teams/${teamId}`, `team/${teamId}`, { name: 'Research', members: [] }],
    [`DELETE /teams/${teamId}`, `team/${teamId}`, undefined],
    [`GET /teams/${teamId}/users`, `team/${teamId}/users`, undefined],
  ];

  it.each(operations)('%s: a fixed path and exactly these headers (TEAM-1 to TEAM-6)', async (operation, to, body) => {
    const [method = '', path = ''] = operation.split(' ');
    const headers = {
      'x-request-id': 'req-1',
      'client-name': 'console_2.0',
      'x-is-admin': 'true',
      'x-forwarded-for': '10.0.0.1',
      'x-user-id': teamId,
      cookie: 'session=1',
      accept: 'text/html',
      'accept-encoding': 'gzip, br',
      'user-agent': 'evil',
      'x-http-method-override': 'DELETE',
    };
    for (const client of [token, admin]) {
      const { status } = await client.call(method, path, { headers, ...(body ? { body } : {}) });
      expect(status).toBe(200);
      const text = body === undefined ? '' : JSON.stringify(body);
      const length = body === undefined ? {} : { length: text.length };
      expect(sent()).toEqual({
        line: `${method} /connector/api/v1/entity/${to} HTTP/1.1`,
        headers: expectedHeaders(client.credential ?? '', {
          requestId: 'req-1',
          clientName: 'console_2.0',
          ...length,
        }),
        body: text,
      });
    }
  });

  it('a token with and without its display prefix is the same to the backend (TEAM-5)', async () => {
    await token.get('/users/graph/list', { headers: { 'x-request-id': 'r' } });
    const prefixed = sent();
    await app.with(bareJwt(token.credential ?? '')).get('/users/graph/list', { headers: { 'x-request-id': 'r' } });
    expect(sent()).toEqual(prefixed);
  });

  it('hop-by-hop headers of the caller take nothing away, and nothing along', async () => {
    const line = 'GET /api/v1/users/graph/list HTTP/1.1';
    const headers = ['Host: x', `Authorization: bearer  ${token.credential}`, 'X-Request-Id: r'];
    for (const connection of ['authorization', 'x-request-id, client-name', 'close, X-Is-Admin', 'upgrade']) {
      const { answers: responses } = await sendRaw(
        app,
        requestText(line, [...headers, `Connection: ${connection}`, 'X-Is-Admin: 1']),
      );
      expect(responses[0]?.status).toBe(200);
      expect(sent().headers).toEqual(expectedHeaders(token.credential ?? '', { requestId: 'r' }));
    }
  });

  it.each(['', 'a b', 'a,b', 'x'.repeat(65), 'ü', 'a/b', '"a"'])(
    'a client-name %j is not passed on (TEAM-6)',
    async (name) => {
      const response = await token.get('/users/graph/list', {
        headers: { 'client-name': Buffer.from(name).toString('latin1'), 'x-request-id': 'r' },
      });
      expect(response.status).toBe(200);
      expect(sent().headers).toEqual(expectedHeaders(token.credential ?? '', { requestId: 'r' }));
    },
  );

  it('a client-name sent twice is not passed on', async () => {
    const line = 'GET /api/v1/users/graph/list HTTP/1.1';
    const headers = ['Host: x', `Authorization: Bearer ${token.credential}`, 'Client-Name: a', 'Client-Name: b'];
    await sendRaw(app, requestText(line, headers));
    expect(sent().headers).toContain('client-name: latchkey');
  });

  it.each(lists)(
    '%s: the query is what was given and valid, encoded, and nothing more (TEAM-4, CRED-3, FIT-71)',
    async (path) => {
      const queryOf = async (query: string) => {
        const { status } = await token.get(`${path}?${query}`);
        return [status, sent().line.split('?')[1]?.replace(' HTTP/1.1', '')];
      };
      expect(await queryOf('search=a%26admin%3D1')).toEqual([200, 'search=a%26admin%3D1']);
      expect(await queryOf('search=a&_=1&limit=7')).toEqual([200, 'limit=7&search=a']);
      const since = 'created_after=0&created_before=2026-11-27T20:17:00.123Z';
      const narrowed = `search=b&created_by=${'a'.repeat(24)}&${since}`;
      const ofPeople = path === '/users/graph/list';
      expect(await queryOf(narrowed)).toEqual(
        ofPeople
          ? [400, 'limit=7&search=a']
          : [
              200,
              `search=b&created_by=${'a'.repeat(24)}&created_after=0&created_before=${Date.parse('2026-11-27T20:17:00.123Z')}`,
            ],
      );
      expect(await queryOf('page=2&search=%2e%2e%2f%23%3F%25%2B+b')).toEqual([
        200,
        'page=2&search=..%2F%23%3F%25%2B%20b',
      ]);
      expect(await queryOf(`search=${encodeURIComponent('Größe 😀')}`)).toEqual([
        200,
        `search=${encodeURIComponent('Größe 😀')}`,
      ]);
      backend.requests.length = 0;
      const unknown = ['search=a&admin=1&orgId=x&limit=7', 'orgId=x'];
      const bad = ['search=a%0d%0aX-Is-Admin:%201', 'search=%00', 'search=a&search=b', 'page=0', 'limit=1e9'];
      for (const query of [...unknown, ...bad]) {
        expect((await token.get(`${path}?${query}`)).status).toBe(400);
      }
      expect(backend.requests).toEqual([]);
    },
  );

  it.each(['all_0123456789abcdef01234567', '3F2504E0-4F89-41D3-9A0C-0305E82C3301', 'a:b', '..a', 'x'.repeat(128)])(
    'an id %s of the backend reaches it as it is (FIT-70)',
    async (id) => {
      const calls: [string, string, Json][] = [
        ['GET', '', undefined],
        ['PUT', '', { removeUserIds: [admin.userId], more: 1 }],
        ['DELETE', '', undefined],
        ['GET', '/users', undefined],
      ];
      for (const [method, rest, body] of calls) {
        const { status } = await token.call(method, `/teams/${id}${rest}`, { body });
        expect([status, sent().line]).toEqual([200, `${method} /connector/api/v1/entity/team/${id}${rest} HTTP/1.1`]);
        expect(sent().body).toBe(body === undefined ? '' : JSON.stringify(body));
      }
    },
  );

  it.each(['%20', 'a%20b', 'x'.repeat(129), 'ä', '%00', 'a~b', '.'])(
    'what is no id anywhere reaches nothing: %s (FIT-70)',
    async (id) => {
      for (const method of ['GET', 'DELETE']) {
        expect([400, 404, 405]).toContain((await token.call(method, `/teams/${id}`)).status);
      }
      expect(backend.requests).toEqual([]);
    },
  );

  it.each([
    '..',
    '..%2f..%2fadmin',
    '%2e%2e',
    `${teamId}%2fusers`,
    `${teamId}%0d%0ax:y`,
    `${teamId};x`,
    `${teamId}%3fa=1`,
  ])('an id %s reaches nothing (TEAM-3)', async (id) => {
    for (const [method, path] of [
      ['GET', `/teams/${id}`],
      ['DELETE', `/teams/${id}`],
      ['GET', `/teams/${id}/users`],
    ] as const) {
      const line = `${method} /api/v1${path} HTTP/1.1`;
      const { answers: responses } = await sendRaw(
        app,
        requestText(line, ['Host: x', `Authorization: Bearer ${token.credential}`]),
      );
      expect([400, 404, 405]).toContain(responses[0]?.status);
    }
    expect(backend.requests).toEqual([]);
  });

  it('no one without the right is heard there', async () => {
    const { status } = await (await admin.token({ scopes: ['org:read'] })).get('/users/graph/list');
    expect([status, (await app.anonymous.get('/users/graph/list')).status]).toEqual([403, 401]);
    expect((await app.service().get('/users/graph/list')).status).toBe(401);
    expect(backend.requests).toEqual([]);
  });
});

describe('what comes back', () => {
  it('is passed on with its status, its bytes as they are, and none of its headers (TEAM-12)', async () => {
    const text = '{ "team":{"id":7}, "extra":null }\n';
    for (const status of [200, 201, 202, 206]) {
      backend.behave = responding(status, text, [
        'content-type: text/html',
        'set-cookie: a=b',
        'x-powered-by: y',
        'etag: z',
      ]);
      const response = await token.post('/teams', { name: 'x' });
      expect([response.status, response.text]).toEqual([status, text]);
      expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(response.headers.get('content-length')).toBe(String(text.length));
      expect(response.headers.get('cache-control')).toBe('no-store');
      for (const name of ['set-cookie', 'x-powered-by', 'etag']) expect(response.headers.has(name)).toBe(false);
    }
  });

  it('may be nothing (TEAM-12)', async () => {
    backend.behave = (socket) => void socket.write('HTTP/1.1 204 None\r\n\r\n');
    const none = await token.delete(`/teams/${teamId}`);
    expect([none.status, none.text, none.headers.get('content-type')]).toEqual([204, '', null]);
    backend.behave = responding(202, '');
    const empty = await token.delete(`/teams/${teamId}`);
    expect([empty.status, empty.text, empty.headers.get('content-length')]).toEqual([202, '', '0']);
  });

  it('to HEAD is a head', async () => {
    backend.behave = responding(200, '{"users":[]}');
    const { status, text, headers } = await token.call('HEAD', '/users/graph/list');
    expect([status, text, headers.get('content-length')]).toEqual([200, '', '12']);
    expect(sent().line).toContain('GET ');
  });
});

/** Returns the response of the caller, and the log lines of it. */
async function outcome(call: () => Promise<TestResponse>) {
  app.logLines.length = 0;
  const { status, body } = await call();
  const lines: Json[] = app.logLines.map((line) => JSON.parse(line)).filter(({ level }) => level >= 40);
  for (const { level, requestId } of lines) expect([level, requestId]).toEqual([40, body.error.requestId]);
  expect(lines.length).toBeLessThanOrEqual(1);
  return { status, code: body.error.code, message: body.message, cause: lines[0]?.cause };
}

const list = (path = '/users/graph/list') => outcome(() => token.get(path));
const operation = () => outcome(() => token.put(`/teams/${teamId}`, { name: 'x' }));

describe('C2: a backend that answers badly', () => {
  it.each([
    ['/users/graph/list', 'Failed to get users'],
    ['/users/teams/list', 'Failed to get user teams'],
    ['/teams/user/teams', 'Failed to get user teams'],
  ])('400: %s, whatever it says but 200 (TEAM-9, TEAM-10)', async (path, message) => {
    for (const status of [201, 204, 302, 400, 401, 403, 404, 429, 500, 503]) {
      backend.behave = status === 204 ? (socket) => void socket.write('HTTP/1.1 204 None\r\n\r\n') : responding(status);
      const told = await list(path);
      expect(told).toEqual({ status: 400, code: 'BAD_REQUEST', message, cause: `it answered ${status}` });
    }
  });

  it.each([
    [400, 'BAD_REQUEST', 400],
    [403, 'FORBIDDEN', 403],
    [404, 'NOT_FOUND', 404],
    [409, 'CONFLICT', 409],
    [301, 'UPSTREAM_BAD_ANSWER', 502],
    [401, 'UPSTREAM_BAD_ANSWER', 502],
    [422, 'UPSTREAM_BAD_ANSWER', 502],
    [500, 'UPSTREAM_BAD_ANSWER', 502],
    [503, 'UPSTREAM_BAD_ANSWER', 502],
  ])('%i to an operation on a team is %s (TEAM-12, ERR-26)', async (status, code, told) => {
    backend.behave = responding(status, '{"message":"SELECT * FROM teams","stack":"at x.js"}', [
      'www-authenticate: Basic',
    ]);
    const response = await token.put(`/teams/${teamId}`, { name: 'x' });
    expect([response.status, response.body.error.code]).toEqual([told, code]);
    expect(response.text).not.toMatch(/SELECT|stack/);
    expect(response.headers.has('www-authenticate')).toBe(false);
    const { cause } = await operation();
    expect(cause).toBe(told === 502 ? `it answered ${status}` : undefined);
  });

  it('a redirect leads nowhere (TEAM-8)', async () => {
    const elsewhere = await FakeBackend.start();
    for (const status of [301, 302, 303, 307, 308]) {
      backend.behave = responding(status, '', [`location: ${elsewhere.url}/steal`]);
      expect([(await list()).status, (await operation()).status]).toEqual([400, 502]);
    }
    expect([elsewhere.connections, backend.requests.length]).toEqual([0, 10]);
    await elsewhere.stop();
  });

  const bad: [string, Behaviour][] = [
    ['HTML', responding(200, '<html>Sign in</html>', ['content-type: text/html'])],
    ['a gigabyte, announced', (socket) => void socket.write(`HTTP/1.1 200 OK\r\ncontent-length: ${2 ** 30}\r\n\r\n`)],
    ['10 MB and a byte', responding(200, Buffer.alloc(10 * megabyte + 1, ' '))],
    ['a compressed bomb', responding(200, gzipSync(Buffer.alloc(64 * megabyte)), ['content-encoding: gzip'])],
    ['a reset after the headers', (socket) => reset(socket, 'HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{"a"')],
    ['another protocol', (socket) => void socket.end('220 smtp.example.com ESMTP\r\n')],
  ];
  function reset(socket: Socket, after: string): void {
    socket.write(after, () => setImmediate(() => socket.resetAndDestroy()));
  }

  it.each(bad)('502: %s (TEAM-11, ERR-26)', async (_, behave) => {
    backend.behave = behave;
    for (const told of [await list(), await operation()]) {
      expect(told).toMatchObject({ status: 502, code: 'UPSTREAM_BAD_ANSWER', cause: expect.any(String) });
    }
    expect(backend.requests).toHaveLength(2);
  });

  it('503: a reset before anything came; a GET is sent three times, a PUT once (TEAM-8, ERR-27)', async () => {
    backend.behave = (socket) => void socket.resetAndDestroy();
    const response = await token.get('/users/graph/list');
    expect([response.status, response.body.error.code, response.headers.get('retry-after')]).toEqual([
      503,
      'UNAVAILABLE',
      '5',
    ]);
    expect(backend.requests).toHaveLength(3);
    expect(await operation()).toMatchObject({ status: 503, cause: expect.any(String) });
    expect(backend.requests).toHaveLength(4);
  });

  it('503: nothing listens, and then the backend is left alone for a while; the rest of the service goes on', async () => {
    const { port } = backend;
    await backend.stop();
    const told = [
      await list(),
      ...(await Promise.all(Array.from({ length: 6 }, () => token.get('/users/teams/list')))),
    ];
    expect(told.map(({ status }) => status)).toEqual([503, 503, 503, 503, 503, 503, 503]);
    await backend.listen(port);
    expect(await list()).toMatchObject({ status: 503, cause: 'it is left alone after failures in a row' });
    expect(backend.requests).toEqual([]);
    expect((await app.anonymous.get('//health/ready')).status).toBe(200);
    expect((await token.get('/users')).status).toBe(200);
    app.clock.advance(5 * second);
    expect((await token.get('/users/graph/list')).status).toBe(200);
  });

  it('faults are counted, by the refusal that came of them', async () => {
    const { text } = await app.services.metrics.expose();
    for (const error of [
      'connectorUsersFailed',
      'connectorTeamsFailed',
      'connectorBadAnswer',
      'connectorUnavailable',
    ]) {
      expect(text).toMatch(new RegExp(`latchkey_upstream_faults_total\\{refusal="${error}"\\} [1-9]`));
    }
    expect(text).not.toMatch(/latchkey_faults_total\{/);
  });
});

describe('R5: a backend that hangs', () => {
  it('504 after its time for 8 of one person, 429 for the others, and nothing for anyone else (TEAM-7, TEAM-30, ERR-28)', async () => {
    const drip: Behaviour = (socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n');
      const drops = setInterval(() => socket.write(' '), second);
      socket.once('close', () => clearInterval(drops));
    };
    backend.behave = (socket, request) => (backend.requests.length % 2 ? silent : drip)(socket, request);
    let responded = 0;
    const calls = Array.from({ length: 200 }, async () => {
      const { status, headers } = await token.get('/users/graph/list');
      responded += 1;
      return [status, headers.get('retry-after')];
    });
    await vi.waitFor(() => expect([responded, backend.requests.length]).toEqual([192, 8]), { timeout: 8 * second });
    for (let count = 0; count < 50; count += 1) expect((await token.get('/users')).status).toBe(200);
    expect((await token.post('/personal-access-tokens', { name: 'meanwhile' })).status).toBe(201);
    expect((await app.anonymous.get('//health/ready')).status).toBe(200);
    expect([responded, backend.asked.size]).toEqual([192, 8]);
    const told = (await Promise.all(calls)).map(([status, retryAfter]) => `${status} ${retryAfter}`);
    expect(told.filter((one) => one === '429 1')).toHaveLength(192);
    expect(told.filter((one) => one === '504 null')).toHaveLength(8);
    await vi.waitFor(() => expect(backend.asked.size).toBe(0));
    app.clock.advance(5 * second);
    backend.behave = (socket) => void socket.write(responseBytes(200, '{}'));
    expect((await token.get('/users/graph/list')).status).toBe(200);
  });
});
