import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { hangUp, RawConnection, requestText, sendRaw } from '../support/raw-http.ts';
import { type Client, TestApp } from '../support/test-app.ts';

const page = 'https://console.example';
const body = 'x'.repeat(65_536);
const piece = `10000\r\n${body}\r\n`;

describe('what is refused before it has arrived', () => {
  let app: TestApp;
  let admin: Client;
  beforeAll(async () => {
    app = await TestApp.start({ BASE_URL: 'https://id.example', FRONTEND_URL: page });
    admin = await app.setUp();
  });
  afterEach(hangUp);
  afterAll(() => app.close());

  const readable = {
    'access-control-allow-origin': page,
    'access-control-allow-credentials': 'true',
    vary: 'Origin',
    'strict-transport-security': 'max-age=31536000',
    'x-content-type-options': 'nosniff',
  };

  function post(headers: readonly string[], path = '/api/v1/users'): string {
    return requestText(`POST ${path} HTTP/1.1`, ['Host: x', `Origin: ${page}`, ...headers]);
  }

  it.each([
    ['413: announced', post(['Content-Length: 2000000'])],
    ['415: encoded', post(['Content-Encoding: gzip', 'Content-Length: 0'])],
    ['431: headers over 16 KB', post([`X-Long: ${'a'.repeat(20_000)}`])],
    ['431: headers that are not read to their end', post([`X-Long: ${'a'.repeat(40_000)}`])],
    ['431: more than 100 headers', post(Array.from({ length: 120 }, (_, place) => `x-${place}: 1`))],
    ['400: a broken piece', `${post(['Transfer-Encoding: chunked'])}zz\r\n`],
    ['400: a header that is none', post(['no header'])],
    ['400: an address that is none', post([], '/api/v1/%zz')],
    ['404: an unknown address', post([], '/nowhere')],
    ['401: no credential', post([])],
  ])('%s: the page of an allowed origin may read it (FIT-42, FIT-43)', async (name, bytes) => {
    const { answers: responses } = await sendRaw(app, bytes);
    expect(responses[0]?.status).toBe(Number(name.slice(0, 3)));
    expect(responses[0]?.headers).toMatchObject(readable);
  });

  it.each(['401', '413', '408'])(
    '%s: nothing that arrives afterwards on the connection is carried out (FIT-44, HTTP-28)',
    async (status) => {
      const authorization = `Authorization: Bearer ${admin.credential}`;
      const group = JSON.stringify({ name: `After ${status}`, type: 'custom' });
      const asked = ['Host: x', authorization, 'Content-Type: application/json', `Content-Length: ${group.length}`];
      const request = requestText('POST /api/v1/userGroups HTTP/1.1', asked, group);
      const begun = {
        401: post(['Content-Type: application/json', 'Content-Length: 5']),
        413: post(['Content-Type: application/json', 'Content-Length: 2000000', authorization]),
        408: request.slice(0, 40),
      }[status];
      const connected = once(app.app.server, 'connection');
      const connection = new RawConnection(app).send(begun ?? '');
      const [socket] = (await connected) as [Socket];
      // What Node says of headers that took too long.
      const late = Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' });
      if (status === '408') app.app.server.emit('clientError', late, socket);
      const { answers: responses } = await connection.until(({ answers }) => answers.length > 0);
      expect(String(responses[0]?.status)).toBe(status);
      connection.send((status === '408' ? request.slice(40) : 'hello') + request).send(request);
      await connection.closed();
      connection.socket.end();
      if (!socket.closed) await once(socket, 'close');
      const { body: found } = await admin.get('/userGroups?search=After');
      expect(found.groups).toEqual([]);
    },
  );

  it('431: another origin is not allowed by what stands in a header', async () => {
    const headers = ['Host: x', 'Origin: https://evil.example', `X-Long: origin: ${page} ${'a'.repeat(40_000)}`];
    const { answers: responses } = await sendRaw(app, requestText('GET / HTTP/1.1', headers));
    expect([responses[0]?.status, responses[0]?.headers['access-control-allow-origin']]).toEqual([431, undefined]);
  });

  it.each([
    ['401', []],
    ['401', ['Connection: close']],
    ['413', ['Authorization']],
    ['413', ['Authorization', 'Connection: close']],
  ])(
    '%s arrives while the body still comes in pieces, with %j, and the rest is read (FIT-44)',
    async (status, more) => {
      const headers = more.map((line) => (line === 'Authorization' ? `${line}: Bearer ${admin.credential}` : line));
      const head = post(['Transfer-Encoding: chunked', 'Content-Type: application/json', ...headers]);
      const connection = new RawConnection(app).send(head + piece);
      // One that is let in is refused for its size only.
      for (let sent = 0; sent < 20; sent += 1) connection.send(piece);
      const { answers: responses } = await connection.until(({ answers }) => answers.length > 0);
      expect([String(responses[0]?.status), responses[0]?.headers['connection']]).toEqual([status, 'close']);
      const errors: unknown[] = [];
      connection.socket.on('error', (error) => errors.push(error));
      connection.send(`${piece}${piece}0\r\n\r\n`);
      expect((await connection.closed()).closed).toBe(true);
      expect(errors).toEqual([]);
    },
  );

  it('ends a connection on which a refused body goes on for ever (FIT-44)', async () => {
    const connection = new RawConnection(app).send(post(['Content-Length: 900000000']));
    const closed = once(connection.socket, 'close');
    const { ms } = await connection.until(({ answers }) => answers.length > 0);
    connection.send(body);
    connection.socket.on('end', () => connection.send(body));
    await connection.closed();
    connection.socket.end();
    await closed;
    expect(ms).toBeLessThan(5_000);
  });

  it('a body that arrived with its headers leaves the connection open', async () => {
    const refused = post(['Content-Type: application/json', 'Content-Length: 2']);
    const { answers: responses, closed } = await sendRaw(app, `${refused}{}${refused}{}`, 2);
    expect([responses.map(({ status }) => status), closed]).toEqual([[401, 401], false]);
  });

  describe('Expect: 100-continue (FIT-45)', () => {
    it('a refused request is not asked for its body', async () => {
      const headers = ['Content-Length: 1000', 'Expect: 100-continue'];
      const { text, answers: responses } = await sendRaw(app, post(headers));
      expect([responses[0]?.status, text.includes('100 Continue')]).toEqual([401, false]);
    });

    it('one that is let in is', async () => {
      const sent = JSON.stringify({ name: 'x' });
      const headers = [
        `Authorization: Bearer ${admin.credential}`,
        'Content-Type: application/json',
        `Content-Length: ${sent.length}`,
        'Expect: 100-continue',
      ];
      const arrived = once(app.app.server, 'checkContinue') as Promise<[IncomingMessage]>;
      const connection = new RawConnection(app).send(post(headers, '/api/v1/personal-access-tokens'));
      await arrived;
      await connection.until(({ text }) => text.includes('HTTP/1.1 100 Continue'));
      connection.send(sent);
      const { answers: responses } = await connection.until(({ answers }) =>
        answers.some(({ status }) => status > 100),
      );
      expect(responses.map(({ status }) => status)).toEqual([100, 201]);
    });
  });
});
