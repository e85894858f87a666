import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RawConnection, requestText, sendRaw } from '../support/raw-http.ts';
import { type Client, TestApp } from '../support/test-app.ts';

const open = 'GET /api/v1/org/exists HTTP/1.1';
const create = 'POST /api/v1/users HTTP/1.1';
const bodyBytesMax = 1_048_576;

describe('abuse of HTTP itself', () => {
  let app: TestApp;
  let admin: Client;
  /** Filled in when it is sent: the forms below are made before there is one. */
  const credential = 'Authorization: Bearer {credential}';

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  const filled = (text: string) => text.replaceAll('{credential}', admin.credential ?? '');
  const send = (text: string, count = 1) => sendRaw(app, filled(text), count);
  const user = (name: string) => JSON.stringify({ fullName: name, email: `${name}@example.com` });
  const headers = (...more: string[]) => ['Host: x', credential, 'Content-Type: application/json', ...more];
  const names = async () => (await admin.get('/users')).body.map((one: { fullName: string }) => one.fullName);

  describe('H1: two readings of one message', () => {
    const smuggled = requestText(create, headers(`Content-Length: ${user('smuggled').length}`), user('smuggled'));
    const chunked = 'Transfer-Encoding: chunked';

    const forms: readonly (readonly [string, string])[] = [
      ['a length and chunks', requestText(create, headers('Content-Length: 4', chunked), `0\r\n\r\n${smuggled}`)],
      ['chunks and a length', requestText(create, headers(chunked, 'Content-Length: 4'), `0\r\n\r\n${smuggled}`)],
      ['two lengths', requestText(create, headers('Content-Length: 0', 'Content-Length: 44'), smuggled)],
      ['two equal lengths', requestText(create, headers('Content-Length: 2', 'Content-Length: 2'), `{}${smuggled}`)],
      ...['2, 2', '-2', '+2', '0x2', '2 2', '2e0', '', '99999999999999999999'].map(
        (length) =>
          [`the length ${length}`, requestText(create, headers(`Content-Length: ${length}`), smuggled)] as const,
      ),
      ...['xchunked', 'gzip, chunked', 'chunked, identity', 'chunked, chunked', 'identity', '\x0bchunked', ''].map(
        (coding) =>
          [
            `the coding ${JSON.stringify(coding)}`,
            requestText(create, headers(`Transfer-Encoding: ${coding}`), `0\r\n\r\n${smuggled}`),
          ] as const,
      ),
      ['two codings', requestText(create, headers(chunked, 'Transfer-Encoding: identity'), `0\r\n\r\n${smuggled}`)],
      ['a space before the colon', requestText(create, headers('Transfer-Encoding : chunked'), `0\r\n\r\n${smuggled}`)],
      ...['zz', '-1', '0x0', ' 0', 'fffffffffffffffff', '', '1;a\nb'].map(
        (size) =>
          [
            `the chunk size ${JSON.stringify(size)}`,
            requestText(create, headers(chunked), `${size}\r\n{}\r\n${smuggled}`),
          ] as const,
      ),
      ['a chunk longer than its size', requestText(create, headers(chunked), `1\r\n{}}}\r\n0\r\n\r\n${smuggled}`)],
      ['chunks with bare LF', requestText(create, headers(chunked), `2\n{}\n0\n\n${smuggled}`)],
      ['a folded header', requestText(open, ['Host: x', 'X-Long: a', ' b'], smuggled)],
      ['a folded first header', requestText(open, [' Host: x', 'Host: x'], smuggled)],
      ['bare LF', `${open}\nHost: x\n\n${smuggled}`],
      ['bare CR', `${open}\rHost: x\r\r${smuggled}`],
      ['CR in a value', requestText(open, ['Host: x', 'X-A: a\rX-B: b'], smuggled)],
      ['NUL in a value', requestText(open, ['Host: x', 'X-A: a\0b'], smuggled)],
      ['a header without a name', requestText(open, ['Host: x', ': a'], smuggled)],
      ['a header without a colon', requestText(open, ['Host: x', 'Transfer-Encoding'], smuggled)],
      ['a control character in the address', requestText('GET /api/v1/org\x01 HTTP/1.1', ['Host: x'], smuggled)],
      ['bytes beyond ASCII in the address', requestText('GET /api/v1/\xe9 HTTP/1.1', ['Host: x'], smuggled)],
      ['a space in the address', requestText('GET /api/v1/org exists HTTP/1.1', ['Host: x'], smuggled)],
      ['chunks in HTTP/1.0', requestText('POST /api/v1/users HTTP/1.0', headers(chunked), `0\r\n\r\n${smuggled}`)],
    ];

    it.each(forms)('400 and closed, and what follows is not read: %s', async (_, bytes) => {
      const { answers: responses, closed } = await send(bytes, 2);
      expect([responses.map(({ status }) => status), closed]).toEqual([[400], true]);
      expect(responses[0]?.body.error).toMatchObject({ code: 'BAD_REQUEST', message: responses[0]?.body.message });
      expect(await names(), 'nothing of it was carried out').toEqual(['Ada Lovelace']);
    });

    it('pipelined requests are answered one for one, in order', async () => {
      const first = requestText(open);
      const second = requestText('GET /nowhere HTTP/1.1');
      const { answers: responses } = await send(first + second + first, 3);
      expect(responses.map(({ status }) => status)).toEqual([200, 404, 200]);
    });

    it('each pipelined request needs its own credential', async () => {
      const known = requestText('GET /api/v1/users HTTP/1.1', headers());
      const { answers: responses } = await send(known + requestText('GET /api/v1/users HTTP/1.1'), 2);
      expect(responses.map(({ status }) => status)).toEqual([200, 401]);
    });

    it('a refused body is not taken for the next request', async () => {
      const inner = requestText(open);
      const outer = requestText(
        create,
        ['Host: x', 'Content-Type: application/json', `Content-Length: ${inner.length}`],
        inner,
      );
      const { answers: responses } = await send(outer + requestText('GET /nowhere HTTP/1.1'), 2);
      expect(responses.map(({ status }) => status)).toEqual([401, 404]);
    });
  });

  describe('H2: too much and too little', () => {
    const padded = (bytes: number, name: string) => {
      const start = `${user(name).slice(0, -1)},"pad":"`;
      return `${start}${'x'.repeat(bytes - start.length - 2)}"}`;
    };

    it('201: exactly 1 MB', async () => {
      const body = padded(bodyBytesMax, 'full');
      const { answers: responses } = await send(requestText(create, headers(`Content-Length: ${body.length}`), body));
      expect(responses.map(({ status }) => status)).toEqual([201]);
    });

    it('413: one byte more, announced', async () => {
      const body = padded(bodyBytesMax + 1, 'over');
      const { answers: responses } = await send(requestText(create, headers(`Content-Length: ${body.length}`), body));
      expect(responses.map(({ status, body: told }) => [status, told.error.code])).toEqual([
        [413, 'PAYLOAD_TOO_LARGE'],
      ]);
    });

    it.each([bodyBytesMax + 1, Number.MAX_SAFE_INTEGER])(
      '413 without a credential: %i bytes announced',
      async (length) => {
        const { answers: responses } = await send(requestText(create, ['Host: x', `Content-Length: ${length}`]));
        expect(responses.map(({ status }) => status)).toEqual([413]);
      },
    );

    it('413: one byte more, in chunks', async () => {
      const body = padded(bodyBytesMax + 1, 'over');
      const chunks = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
      const { answers: responses, closed } = await send(
        requestText(create, headers('Transfer-Encoding: chunked'), chunks),
        2,
      );
      expect([responses.map(({ status }) => status), closed]).toEqual([[413], true]);
    });

    it('413 and closed: chunks without end', async () => {
      const connection = new RawConnection(app).send(
        filled(requestText(create, headers('Transfer-Encoding: chunked'))),
      );
      const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`;
      let sent = 0;
      while (!connection.outcome.closed && sent < 10_000) {
        connection.send(chunk);
        sent += 1;
        await connection.until(({ closed }) => closed, 1);
      }
      const { answers: responses } = connection.outcome;
      connection.destroy();
      expect(responses.map(({ status }) => status)).toEqual([413]);
      expect(sent).toBeLessThan(1_000);
    });

    it.each(['gzip', 'br', 'deflate'])('415: 10 MB in a few bytes of %s are not unpacked', async (encoding) => {
      const raw = Uint8Array.from(gzipSync(padded(10 * bodyBytesMax, 'bomb')));
      const coded = { 'content-type': 'application/json', 'content-encoding': encoding };
      expect((await admin.call('POST', '/users', { raw, headers: coded })).status).toBe(415);
      // Without saying so it is text that isn't JSON.
      const plain = { 'content-type': 'application/json' };
      expect((await admin.call('POST', '/users', { raw, headers: plain })).status).toBe(400);
    });

    it('a peer that goes away in the middle of its body does no harm', async () => {
      const connections = Array.from({ length: 50 }, (_, place) =>
        new RawConnection(app).send(requestText(create, headers('Content-Length: 500'), user(`gone${place}`))),
      );
      await Promise.all(connections.map((connection) => connection.until(() => false, 50)));
      for (const [place, { socket }] of connections.entries()) {
        if (place % 2 === 0) socket.resetAndDestroy();
        else socket.destroy();
      }
      expect((await admin.get('/users')).status).toBe(200);
      expect((await names()).filter((name: string) => name.startsWith('gone'))).toEqual([]);
    });
  });

  it('nothing of this was logged as a fault', () => {
    expect(app.logLines.filter((line) => JSON.parse(line).level >= 50)).toEqual([]);
  });
});
