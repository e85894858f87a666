import { METHODS } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requestText, sendRaw } from '../support/raw-http.ts';
import { type Client, TestApp } from '../support/test-app.ts';

const ours = 'https://console.example';
const further = 'https://tools.example';

describe('headers of answers, HEAD, OPTIONS and methods', () => {
  let app: TestApp;
  let admin: Client;

  beforeAll(async () => {
    app = await TestApp.start({ FRONTEND_URL: `${ours}/app/`, CORS_ORIGINS: further });
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  const preflight = (origin: string, path = '/users') =>
    app.anonymous.call('OPTIONS', path, {
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers': 'authorization, content-type',
      },
    });

  it.each([
    ['200', 'GET', '/users', true],
    ['201', 'POST', '/personal-access-tokens', true],
    ['400', 'POST', '/users', true],
    ['401', 'GET', '/users', false],
    ['404', 'GET', '/nowhere', false],
    ['405', 'DELETE', '/users', false],
    ['200', 'GET', '/org/exists', false],
  ])(
    '%s: %s %s has no-store and nosniff, and names no software (HTTP-9, HTTP-10)',
    async (...[status, method, path, known]) => {
      const client = known ? admin : app.anonymous;
      const response = await client.call(method, path, method === 'POST' ? { body: { name: 'x' } } : {});
      expect(response.status).toBe(Number(status));
      expect(response.headers.get('cache-control')).toBe('no-store');
      expect(response.headers.get('x-content-type-options')).toBe('nosniff');
      expect(response.headers.get('server')).toBeNull();
      expect(response.headers.get('x-powered-by')).toBeNull();
      expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(response.headers.get('set-cookie')).toBeNull();
    },
  );

  it('what cannot be parsed gets them too', async () => {
    const [response] = (await sendRaw(app, 'nonsense\r\n\r\n')).answers;
    expect(response?.headers).toMatchObject({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
    expect(Object.keys(response?.headers ?? {})).not.toContain('server');
  });

  describe('HEAD', () => {
    it('200: as GET with the length and without the body', async () => {
      const got = await admin.get('/org');
      const { answers: responses, text } = await sendRaw(
        app,
        requestText('HEAD /api/v1/org HTTP/1.1', [
          'Host: x',
          `Authorization: Bearer ${admin.credential}`,
          'Connection: close',
        ]),
        9,
      );
      expect(responses[0]?.status).toBe(200);
      expect(responses[0]?.headers['content-length']).toBe(String(Buffer.byteLength(got.text)));
      expect(text.endsWith('\r\n\r\n')).toBe(true);
    });

    it.each([
      ['/users', 401],
      ['/personal-access-tokens/admin', 401],
      ['/nowhere', 404],
      ['/userAccount/authenticate', 405],
      ['//health/live', 200],
    ])('the same checks as GET: %s is %i', async (path, status) => {
      const response = await app.anonymous.call('HEAD', path);
      expect([response.status, response.text]).toEqual([status, '']);
    });
  });

  describe('CORS (HTTP-22, HTTP-23)', () => {
    it.each([ours, further])('204: the preflight of %s is allowed', async (origin) => {
      const { status, headers } = await preflight(origin);
      expect(status).toBe(204);
      expect(headers.get('access-control-allow-origin')).toBe(origin);
      expect(headers.get('access-control-allow-methods')?.split(', ').sort()).toEqual([
        'DELETE',
        'GET',
        'PATCH',
        'POST',
        'PUT',
      ]);
      expect(headers.get('access-control-allow-headers')).toBe('authorization, content-type');
      expect(headers.get('access-control-allow-credentials')).toBe('true');
      expect(headers.get('vary')).toContain('Origin');
    });

    it.each(['https://evil.example', 'null', `${ours}.evil.example`, ours.replace('https', 'http'), `${ours}:8443`])(
      'the preflight of %s is not',
      async (origin) => {
        const { headers } = await preflight(origin);
        expect(headers.get('access-control-allow-origin')).toBeNull();
      },
    );

    it.each([
      ['200', '/org/exists'],
      ['401', '/users'],
      ['404', '/nowhere'],
      ['405', '/userAccount/authenticate'],
    ])('%s: an allowed origin may read the answer and its exposed headers', async (status, path) => {
      const { headers, status: got } = await app.anonymous.get(path, { headers: { origin: ours } });
      expect(got).toBe(Number(status));
      expect(headers.get('access-control-allow-origin')).toBe(ours);
      expect(headers.get('access-control-allow-credentials')).toBe('true');
      const exposed = headers.get('access-control-expose-headers')?.toLowerCase().split(', ');
      expect(exposed?.sort()).toEqual([
        'etag',
        'idempotency-replayed',
        'location',
        'ratelimit-limit',
        'ratelimit-remaining',
        'ratelimit-reset',
        'retry-after',
        'x-request-id',
        'x-session-token',
      ]);
    });

    it('a foreign origin is answered without permission to read', async () => {
      const { status, headers } = await app.anonymous.get('/org/exists', {
        headers: { origin: 'https://evil.example' },
      });
      expect(status).toBe(200);
      expect(headers.get('access-control-allow-origin')).toBeNull();
      expect(headers.get('access-control-allow-credentials')).toBeNull();
      expect(headers.get('vary')).toContain('Origin');
    });

    it.each([
      ['/users', 405],
      ['/nowhere', 404],
      ['/personal-access-tokens', 405],
    ])('OPTIONS %s that asks for nothing is a method like any other: %i', async (path, expected) => {
      const before = await app.audit();
      const { status } = await admin.call('OPTIONS', path, { body: { name: 'x' } });
      expect(status).toBe(expected);
      expect(await app.audit()).toEqual(before);
    });
  });

  describe('methods', () => {
    const usual = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'CONNECT']);
    const exotic = METHODS.filter((method) => !usual.has(method));

    it.each(exotic)('405 on a known path, 404 on an unknown one: %s', async (method) => {
      const known = await sendRaw(app, requestText(`${method} /api/v1/org/exists HTTP/1.1`));
      expect(known.answers.map(({ status, headers }) => [status, headers['allow']])).toEqual([[405, 'GET, HEAD']]);
      const unknown = await sendRaw(app, requestText(`${method} /nowhere HTTP/1.1`));
      expect(unknown.answers.map(({ status, body }) => [status, body.error.code])).toEqual([[404, 'NOT_FOUND']]);
    });

    it('TRACE does not echo the credential', async () => {
      const headers = ['Host: x', `Authorization: Bearer ${admin.credential}`];
      const { answers: responses, text } = await sendRaw(app, requestText('TRACE /api/v1/users HTTP/1.1', headers));
      expect(responses[0]?.status).toBe(405);
      expect(text).not.toContain('Bearer ey');
    });

    it('CONNECT makes no tunnel: the connection closes', async () => {
      const { closed, answers: responses } = await sendRaw(app, requestText('CONNECT example.com:443 HTTP/1.1'));
      expect([closed, responses.length]).toEqual([true, 0]);
    });

    it.each(['FOO', 'get', 'GETT'])('400 and closed: the unknown method %s', async (method) => {
      const { answers: responses, closed } = await sendRaw(
        app,
        requestText(`${method} /api/v1/org/exists HTTP/1.1`),
        2,
      );
      expect([responses.map(({ status }) => status), closed]).toEqual([[400], true]);
    });

    it('Upgrade and unknown expectations are ignored', async () => {
      const upgrade = ['Host: x', 'Connection: Upgrade', 'Upgrade: websocket'];
      for (const headers of [upgrade, ['Host: x', 'Expect: the-unexpected']]) {
        const { answers: responses } = await sendRaw(app, requestText('GET /api/v1/org/exists HTTP/1.1', headers));
        expect(responses.map(({ status, body }) => [status, body])).toEqual([[200, { exists: true }]]);
      }
    });
  });
});
