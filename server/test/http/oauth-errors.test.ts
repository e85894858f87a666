import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { requestText, sendRaw } from '../support/raw-http.ts';
import { secondConnection } from '../support/second-connection.ts';
import {
  askToken,
  basic,
  describable,
  formTo,
  type RegisteredService,
  registerService,
} from '../support/service-clients.ts';
import { type Client, TestApp, type TestResponse } from '../support/test-app.ts';

const paths = ['/oauth2/token', '/oauth2/introspect', '/oauth2/revoke'] as const;
const good = 'grant_type=client_credentials&token=x';

/** Returns the visible parts of an error. */
function seen({ status, body, headers }: TestResponse) {
  return {
    status,
    error: body.error,
    members: Object.keys(body).sort(),
    isPrintable: describable.test(body.error_description),
    type: headers.get('content-type'),
    cached: headers.get('cache-control'),
    hasId: headers.has('x-request-id'),
  };
}

/** Returns an error in the form of RFC 6749, section 5.2. */
function apiError(status: number, error: string) {
  return {
    status,
    error,
    members: ['error', 'error_description'],
    isPrintable: true,
    type: 'application/json; charset=utf-8',
    cached: 'no-store',
    hasId: true,
  };
}

describe('what OAuth endpoints refuse, in the form of RFC 6749 (ERR-5)', () => {
  let app: TestApp;
  let admin: Client;
  let service: RegisteredService;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    service = await registerService(admin);
  });
  afterAll(() => app.close());

  const post = (path: string, raw: string | Uint8Array<ArrayBuffer>, type?: string) =>
    app.anonymous.call('POST', path, {
      raw,
      headers: { ...basic(service), ...(type === undefined ? {} : { 'content-type': type }) },
    });
  const json = (path: string, text: string) => post(path, text, 'application/json');
  const form = (path: string, text: string) => formTo(app)(path, text, basic(service));

  for (const path of paths) {
    it(`200 by a good form at ${path}, so that what follows is refused for its own fault`, async () => {
      expect((await form(path, good)).status).toBe(200);
    });

    it.each([
      ['nothing at all', ''],
      ['a field twice', `${good}&token=y`],
      ['a field twice, differently encoded', `${good}&%74oken=y`],
      ['a secret twice', `${good}&client_secret=a&client_secret=b`],
      ['a name that reaches for prototypes', `${good}&__proto__=x`],
      ['another one', `${good}&constructor=x`],
      ['no percent-encoding', `${good}&a=%zz`],
      ['no UTF-8', `${good}&a=%ff`],
      ['NUL', 'grant_type=client_credentials%00&token=x%00'],
      ['very many fields', `${good}&${'a&'.repeat(500_000)}`],
      ['a name of all kinds of letters', `${good}&${encodeURIComponent('"\\\r\n€🔑<script>')}=1&prototype=1`],
    ])(`400: a form with %s at ${path}`, async (_, text) => {
      expect(seen(await form(path, text))).toEqual(apiError(400, 'invalid_request'));
    });

    it.each([
      ['half an object', '{'],
      ['a list', '[]'],
      ['null', 'null'],
      ['a text', '"grant_type=client_credentials"'],
      ['an empty object', '{}'],
      [
        'a member twice',
        '{"grant_type":"client_credentials","token":"x","token":"x","grant_type":"client_credentials"}',
      ],
      ['__proto__', '{"grant_type":"client_credentials","token":"x","__proto__":{"token":"x"}}'],
      ['everything in __proto__', '{"__proto__":{"grant_type":"client_credentials","token":"x"}}'],
      ['lists for texts', '{"grant_type":["client_credentials"],"token":["x"]}'],
      ['objects for texts', '{"grant_type":{"$ne":null},"token":{"$ne":null}}'],
      ['numbers for texts', '{"grant_type":1,"token":1}'],
      ['null for texts', '{"grant_type":null,"token":null}'],
      ['a lone surrogate', '{"grant_type":"client_credentials","token":"x","a":"\\ud800"}'],
      ['a long name of odd letters', `{"${'€"\\'.replace(/["\\]/g, '\\$&').repeat(50)}":"\\u0000","token":"x"}`],
    ])(`400: JSON with %s at ${path}`, async (_, text) => {
      expect(seen(await json(path, text))).toEqual(apiError(400, 'invalid_request'));
    });

    it(`401: who is no client at ${path}, with a challenge (SERVICE-17)`, async () => {
      const response = await formTo(app)(path, good, basic({ ...service, clientSecret: 'wrong' }));
      expect(seen(response)).toEqual(apiError(401, 'invalid_client'));
      expect(response.headers.get('www-authenticate')).toBe('Basic realm="latchkey"');
    });

    it(`405 in the form of every address, for every other method at ${path} (ERR-19)`, async () => {
      for (const method of ['GET', 'PUT', 'PATCH', 'DELETE']) {
        const { status, headers, body } = await app.anonymous.call(method, path, { headers: basic(service) });
        expect([method, status, headers.get('allow')]).toEqual([method, 405, 'POST']);
        expect(body.error.code).toBe('METHOD_NOT_ALLOWED');
      }
      expect((await app.anonymous.call('HEAD', path)).status).toBe(405);
    });

    it(`413: a body over 1 MB at ${path}, announced or not`, async () => {
      const length = 1_048_577;
      expect(seen(await form(path, 'a'.repeat(length)))).toEqual(apiError(413, 'invalid_request'));
      expect(seen(await json(path, ' '.repeat(length)))).toEqual(apiError(413, 'invalid_request'));
      const chunked = ['Host: x', 'Transfer-Encoding: chunked', 'Content-Type: application/x-www-form-urlencoded'];
      const text = requestText(
        `POST /api/v1${path} HTTP/1.1`,
        chunked,
        `${length.toString(16)}\r\n${'a'.repeat(length)}`,
      );
      const [response] = (await sendRaw(app, `${text}\r\n0\r\n\r\n`)).answers;
      expect([response?.status, response?.body.error]).toEqual([413, 'invalid_request']);
    });

    it.each([
      ['another type', 'text/plain'],
      ['no type', undefined],
      ['a form of parts', 'multipart/form-data; boundary=x'],
      ['JSON in another charset', 'application/json; charset=iso-8859-1'],
      ['two types in one', 'application/x-www-form-urlencoded, application/json'],
      ['nearly a form', 'application/x-www-form-urlencodedx'],
    ])(`415: %s at ${path} (HTTP-16)`, async (_, type) => {
      expect(seen(await post(path, new TextEncoder().encode(good), type))).toEqual(apiError(415, 'invalid_request'));
    });

    it(`415: a form that is compressed, or says so, at ${path} (HTTP-26)`, async () => {
      const headers = { ...basic(service), 'content-encoding': 'gzip' };
      expect(seen(await formTo(app)(path, good, headers))).toEqual(apiError(415, 'invalid_request'));
    });

    it(`400: two Authorization headers at ${path} (HTTP-24)`, async () => {
      const headers = ['Host: x', 'Authorization: Basic YTpi', 'Authorization: Basic YTpi', 'Content-Length: 0'];
      const { answers: responses } = await sendRaw(app, requestText(`POST /api/v1${path} HTTP/1.1`, headers));
      expect([responses[0]?.status, responses[0]?.body.error]).toEqual([400, 'invalid_request']);
    });

    it(`500 and nothing more at ${path}, when the store is broken (ERR-6, ERR-25)`, async () => {
      const store = secondConnection(app);
      store.exec('ALTER TABLE service_clients RENAME TO elsewhere');
      const response = await form(path, good);
      store.exec('ALTER TABLE elsewhere RENAME TO service_clients');
      store.close();
      expect(seen(response)).toEqual(apiError(500, 'server_error'));
      expect(response.body.error_description).toBe('Something went wrong on our side');
      expect((await form(path, good)).status).toBe(200);
    });
  }

  it('503 with Retry-After, when the store is held by someone else (ERR-27)', async () => {
    const store = secondConnection(app);
    store.exec('BEGIN IMMEDIATE');
    const response = await askToken(app, service);
    store.exec('ROLLBACK');
    store.close();
    expect(seen(response)).toEqual(apiError(503, 'temporarily_unavailable'));
    expect(response.headers.get('retry-after')).toBe('5');
    expect((await askToken(app, service)).status).toBe(200);
  });

  it('the routes that administer services keep the common form (ERR-2)', async () => {
    const { body } = await admin.post('/service-clients', {});
    expect(body).toMatchObject({ error: { code: 'VALIDATION_ERROR' }, message: expect.any(String) });
  });
});
