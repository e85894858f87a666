import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type RawResponse, requestText, sendRaw } from '../support/raw-http.ts';
import { type Client, TestApp } from '../support/test-app.ts';

const open = 'GET /api/v1/org/exists HTTP/1.1';

describe('raw request rules', () => {
  let app: TestApp;
  let admin: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  async function send(firstLine: string, headers?: readonly string[], body?: string): Promise<RawResponse> {
    const { answers: responses, text } = await sendRaw(app, requestText(firstLine, headers, body));
    const [response] = responses;
    if (!response) throw new Error(`no answer to ${firstLine}: ${text}`);
    return response;
  }

  /** Status and code of a refusal that has the form of one. */
  function errorOf(response: RawResponse): unknown[] {
    const { code, message, requestId } = response.body.error;
    expect(response.headers['content-type']).toBe('application/json; charset=utf-8');
    expect([message, requestId]).toEqual([response.body.message, response.headers['x-request-id']]);
    expect(requestId).toMatch(/^[A-Za-z0-9._:-]{1,64}$/);
    return [response.status, code];
  }

  describe('x-request-id (HTTP-8)', () => {
    it.each(['a', 'A-b.c_d:9', 'x'.repeat(64)])('a good one is taken over and echoed: %s', async (id) => {
      const { headers } = await app.anonymous.get('/org/exists', { headers: { 'x-request-id': id } });
      expect(headers.get('x-request-id')).toBe(id);
    });

    it.each(['', 'x'.repeat(65), 'a b', 'a/b', 'é', '<script>', 'a,b', '"', 'a\tb'])(
      'a bad one is replaced: %j',
      async (id) => {
        const { headers } = await send(open, ['Host: x', `X-Request-Id: ${id}`]);
        expect(headers['x-request-id']).toMatch(/^[A-Za-z0-9._:-]{1,64}$/);
        expect(headers['x-request-id']).not.toBe(id);
      },
    );

    it('a doubled one is replaced', async () => {
      const { headers } = await send(open, ['Host: x', 'X-Request-Id: a', 'X-Request-Id: b']);
      expect(headers['x-request-id']).not.toMatch(/^[ab]$/);
    });

    it('stands in the refusal, in the log line and in the audit row of its request', async () => {
      const headers = { 'x-request-id': 'seen.here:1' };
      const refused = await app.anonymous.get('/users', { headers });
      expect(refused.body.error.requestId).toBe('seen.here:1');
      await admin.post('/users', { fullName: 'Ann', email: 'ann@example.com' }, { headers });
      expect((await app.audit()).at(-1)).toMatchObject({ action: 'user.created', request_id: 'seen.here:1' });
      const lines = app.logLines.filter((line) => line.includes('seen.here:1')).map((line) => JSON.parse(line));
      expect(lines.map(({ requestId, status }) => [requestId, status])).toEqual([
        ['seen.here:1', 401],
        ['seen.here:1', 201],
      ]);
    });

    it('generated ones differ from request to request', async () => {
      const ids = await Promise.all(
        Array.from({ length: 50 }, async () => (await app.anonymous.get('/org/exists')).headers.get('x-request-id')),
      );
      expect(new Set(ids).size).toBe(50);
    });
  });

  describe('headers that may stand once', () => {
    it.each([
      ['Host', ['Host: a', 'Host: a']],
      ['Authorization', ['Host: a', 'Authorization: Bearer a', 'authorization: Bearer a']],
      ['Content-Type', ['Host: a', 'Content-Type: application/json', 'CONTENT-TYPE: text/plain']],
    ])('400: two %s (HTTP-24)', async (_, headers) => {
      expect(errorOf(await send(open, headers))).toEqual([400, 'BAD_REQUEST']);
    });

    it('400: two Authorization headers also where both are good', async () => {
      const good = `Authorization: Bearer ${admin.credential}`;
      expect(errorOf(await send('GET /api/v1/users HTTP/1.1', ['Host: a', good, good]))).toEqual([400, 'BAD_REQUEST']);
    });
  });

  describe('Host and the version', () => {
    it('400: HTTP/1.1 without Host (HTTP-25)', async () => {
      expect(errorOf(await send(open, []))).toEqual([400, 'BAD_REQUEST']);
    });

    it('200: HTTP/1.0 needs no Host, and its connection closes', async () => {
      const { answers: responses, closed } = await sendRaw(app, requestText('GET /api/v1/org/exists HTTP/1.0', []), 2);
      expect(responses.map(({ status }) => status)).toEqual([200]);
      expect(closed).toBe(true);
    });

    it.each([
      ['0.9, its own form', 'GET /api/v1/org/exists\r\n\r\n'],
      ['0.9, spelled out', requestText('GET /api/v1/org/exists HTTP/0.9', [])],
      ['0.9, with Host', requestText('GET /api/v1/org/exists HTTP/0.9')],
      ['1.2', requestText('GET /api/v1/org/exists HTTP/1.2')],
      ['2.0', requestText('GET /api/v1/org/exists HTTP/2.0')],
      ['the preface of HTTP/2', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'],
      ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03'],
    ])('400 and closed: HTTP %s (HTTP-25)', async (_, bytes) => {
      const { answers: responses, closed } = await sendRaw(app, bytes, 2);
      expect(responses).toHaveLength(1);
      for (const response of responses) expect(errorOf(response)).toEqual([400, 'BAD_REQUEST']);
      expect(closed).toBe(true);
    });
  });

  describe('number and size of headers (HTTP-27)', () => {
    const many = (count: number) => Array.from({ length: count }, (_, place) => `x-${place}: 1`);

    it('200: 100 headers', async () => {
      expect((await send(open, ['Host: x', ...many(99)])).status).toBe(200);
    });

    it.each([100, 900])('431: Host and %i more', async (count) => {
      expect(errorOf(await send(open, ['Host: x', ...many(count)]))).toEqual([431, 'HEADERS_TOO_LARGE']);
    });

    it('the credential after 100 other headers is not silently dropped', async () => {
      const headers = ['Host: x', ...many(100), `Authorization: Bearer ${admin.credential}`];
      expect(errorOf(await send('GET /api/v1/users HTTP/1.1', headers))).toEqual([431, 'HEADERS_TOO_LARGE']);
    });

    it.each([
      ['a header of 20 kB', open, [`x: ${'a'.repeat(20_000)}`]],
      ['an address of 20 kB', `GET /${'a'.repeat(20_000)} HTTP/1.1`, ['Host: x']],
    ])('431 and closed: %s', async (_, firstLine, headers) => {
      const { answers: responses, closed } = await sendRaw(app, requestText(firstLine, headers), 2);
      for (const response of responses) expect(errorOf(response)).toEqual([431, 'HEADERS_TOO_LARGE']);
      expect([responses.length, closed]).toEqual([1, true]);
    });
  });

  describe('Content-Encoding (HTTP-26)', () => {
    it.each(['gzip', 'br', 'deflate', 'zstd', 'identity, gzip', 'gzip, identity', ''])('415: %j', async (encoding) => {
      const headers = ['Host: x', `Content-Encoding: ${encoding}`, 'Content-Length: 0'];
      expect(errorOf(await send('POST /api/v1/org HTTP/1.1', headers))).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE']);
    });

    it('415 comes before authentication, and identity passes in any case', async () => {
      const post = (encoding: string) =>
        send('POST /api/v1/users HTTP/1.1', ['Host: x', `Content-Encoding: ${encoding}`, 'Content-Length: 0']);
      expect((await post('gzip')).status).toBe(415);
      expect((await post('Identity')).status).toBe(401);
    });
  });
});
