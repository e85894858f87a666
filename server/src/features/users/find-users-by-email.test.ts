import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { checkAgainstContract } from '../../../test/support/contract-check.ts';
import { RawConnection, type RawResponse, requestText, sendRaw } from '../../../test/support/raw-http.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';

const path = '/api/v1/users/email/exists';
const spellings = [
  'ada@example.com',
  'ADA@Example.COM',
  '  ada@example.com  ',
  'ada@EXAMPLE.com',
  'ada@ｅｘａｍｐｌｅ.com',
  'ada@example。com',
];
const notAddresses = [
  '',
  ' ',
  'ada',
  'ada@',
  '@example.com',
  'ada@example',
  'a b@example.com',
  'ada@example.com,b@x.io',
];

describe('GET /users/email/exists', () => {
  let app: TestApp;
  let admin: Client;
  let service: Client;
  let credential: string;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    service = app.service();
    credential = service.credential ?? '';
  });
  afterEach(() => {
    Object.assign(app.app.server, { headersTimeout: 10_000, requestTimeout: 30_000 });
  });
  afterAll(() => app.close());

  const heads = (...more: string[]) => ['Host: x', `Authorization: Bearer ${credential}`, ...more];

  /** Sends a body with the GET, which `fetch` refuses to. */
  async function ask(
    body: string,
    { type = 'application/json', query = '', as = credential } = {},
  ): Promise<RawResponse> {
    const bytes = Buffer.from(body).toString('latin1');
    const headers = ['Host: x', `Authorization: Bearer ${as}`, `Content-Length: ${bytes.length}`];
    if (type) headers.push(`Content-Type: ${type}`);
    const { answers: responses } = await sendRaw(app, requestText(`GET ${path}${query} HTTP/1.1`, headers, bytes));
    const [response] = responses;
    if (!response) throw new Error('no answer');
    checkAgainstContract('GET', path, response);
    return response;
  }
  const askFor = (email: unknown, options?: Parameters<typeof ask>[1]) => ask(JSON.stringify({ email }), options);
  const inQuery = (email: string) => service.get(`/users/email/exists?email=${encodeURIComponent(email)}`);
  const ada = () => [{ _id: admin.userId, email: 'ada@example.com', fullName: 'Ada Lovelace', isDeleted: false }];
  const fieldOf = ({ status, body }: { status: number; body: Json }) => [status, body.error.details[0].field];

  it.each(spellings)(
    '200: %j in a JSON body on the GET finds anyone who has the address (SERVICE-5, USER-9)',
    async (email) => {
      const { status, body } = await askFor(email);
      expect([status, body]).toEqual([200, ada()]);
    },
  );

  it.each(spellings)('200: and %j in the query (SERVICE-5, USER-9)', async (email) => {
    const { status, body } = await inQuery(email);
    expect([status, body]).toEqual([200, ada()]);
  });

  it('200: a body that comes in chunks (SERVICE-5)', async () => {
    const headers = heads('Content-Type: application/json', 'Transfer-Encoding: chunked');
    const connection = new RawConnection(app).send(requestText(`GET ${path} HTTP/1.1`, headers));
    for (const piece of ['{"email"', ':"ada@exa', 'mple.com"', '}']) {
      connection.send(`${piece.length.toString(16)}\r\n${piece}\r\n`);
    }
    const { answers: responses } = await connection
      .send('0\r\n\r\n')
      .until(({ answers: responses }) => responses.length > 0);
    connection.destroy();
    expect(responses.map(({ status, body }) => [status, body])).toEqual([[200, ada()]]);
  });

  it('200: no one is an empty array (SERVICE-5)', async () => {
    expect((await askFor('nobody@example.com')).body).toEqual([]);
    expect((await inQuery('nobody@example.com')).body).toEqual([]);
  });

  it('200: a deleted user is found and said to be deleted (SERVICE-5)', async () => {
    const { body } = await admin.post('/users', { fullName: 'Gone Girl', email: 'gone@example.com' });
    const user = { _id: body._id, email: 'gone@example.com', fullName: 'Gone Girl' };
    expect((await inQuery('gone@example.com')).body).toEqual([{ ...user, isDeleted: false }]);
    await app.deleteUser(body._id);
    expect((await inQuery('gone@example.com')).body).toEqual([{ ...user, isDeleted: true }]);
    expect((await askFor('gone@example.com')).body).toEqual([{ ...user, isDeleted: true }]);
  });

  it('200: the body counts before the query (SERVICE-5)', async () => {
    expect((await askFor('ada@example.com', { query: '?email=nobody@example.com' })).body).toEqual(ada());
    expect((await askFor('nobody@example.com', { query: '?email=ada@example.com' })).body).toEqual([]);
    expect((await ask('{}', { query: '?email=ada@example.com' })).body).toEqual(ada());
  });

  it('200: HEAD is answered without a body', async () => {
    const { status, text } = await service.call('HEAD', '/users/email/exists?email=ada@example.com');
    expect([status, text]).toEqual([200, '']);
  });

  it('400: neither in the body nor in the query (SERVICE-5)', async () => {
    expect(fieldOf(await service.get('/users/email/exists'))).toEqual([400, 'body.email']);
    expect(fieldOf(await ask('{}'))).toEqual([400, 'body.email']);
    expect(fieldOf(await ask(''))).toEqual([400, 'body.email']);
    expect(fieldOf(await ask('{"mail":"ada@example.com"}'))).toEqual([400, 'body.email']);
  });

  it.each(notAddresses)('400: %j is no address, in the body and in the query (SERVICE-5, USER-12)', async (email) => {
    expect(fieldOf(await askFor(email))).toEqual([400, 'body.email']);
    expect(fieldOf(await inQuery(email))).toEqual([400, 'query.email']);
  });

  it.each([[null], [1], [['ada@example.com']], [{ $ne: null }], [true]])(
    '400: %j is no text (SERVICE-5, HTTP-14)',
    async (email) => {
      expect(fieldOf(await askFor(email))).toEqual([400, 'body.email']);
    },
  );

  it('400: twice in the query (HTTP-14)', async () => {
    const response = await service.get('/users/email/exists?email=ada@example.com&email=ada@example.com');
    expect(fieldOf(response)).toEqual([400, 'query.email']);
  });

  it.each([
    ['broken off', '{"email":"ada@example.com"'],
    ['not JSON', 'email=ada@example.com'],
    ['an array', '["ada@example.com"]'],
    ['a text', '"ada@example.com"'],
    ['null', 'null'],
    ['more after it', '{"email":"ada@example.com"}x'],
    ['a name twice', '{"email":"x@example.com","email":"ada@example.com"}'],
  ])('400: a body that is %s (ERR-10)', async (_, body) => {
    expect(fieldOf(await ask(body))).toEqual([400, 'body']);
  });

  it('400: a name that reaches for prototypes, in the body and in the query (HTTP-15)', async () => {
    expect(fieldOf(await ask('{"email":"ada@example.com","__proto__":{}}'))).toEqual([400, 'body.__proto__']);
    const response = await service.get('/users/email/exists?email=ada@example.com&__proto__=1');
    expect(fieldOf(response)).toEqual([400, 'query.__proto__']);
  });

  it.each([
    '',
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/json; charset=latin1',
    'multipart/form-data',
  ])('415: a body of the type %j (ERR-23)', async (type) => {
    const { status, body } = await ask('{"email":"ada@example.com"}', { type });
    expect([status, body.error.code]).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE']);
  });

  it('413: a body over its limit, announced or not (HTTP-11)', async () => {
    const { answers: responses } = await sendRaw(
      app,
      requestText(`GET ${path} HTTP/1.1`, heads('Content-Type: application/json', 'Content-Length: 1048577'), '{'),
    );
    expect(responses.map(({ status, body }) => [status, body.error.code])).toEqual([[413, 'PAYLOAD_TOO_LARGE']]);
    const fits = `{"email":"ada@example.com"${' '.repeat(1_048_576 - 27)}}`;
    expect([fits.length, (await ask(fits)).status]).toEqual([1_048_576, 200]);
  });

  it('413 and closed: chunks without end (HTTP-11)', async () => {
    const headers = heads('Content-Type: application/json', 'Transfer-Encoding: chunked');
    const connection = new RawConnection(app).send(requestText(`GET ${path} HTTP/1.1`, headers));
    const chunk = `10000\r\n${' '.repeat(0x10000)}\r\n`;
    for (let sent = 0; sent < 17; sent += 1) connection.send(chunk);
    const { answers: responses, closed } = await connection.closed();
    connection.destroy();
    expect(closed).toBe(true);
    expect(responses.map(({ status, body }) => [status, body.error.code])).toEqual([[413, 'PAYLOAD_TOO_LARGE']]);
  });

  // The limit itself, 30 s, is asserted with the slow peers; that it holds for this body is seen sooner with a shorter one.
  it('408 and closed: a body that stops half way (HTTP-28)', async () => {
    // The shorter one of the two is always that of the headers.
    Object.assign(app.app.server, { headersTimeout: 300, requestTimeout: 300 });
    const headers = heads('Content-Type: application/json', 'Content-Length: 500');
    const connection = new RawConnection(app).send(requestText(`GET ${path} HTTP/1.1`, headers, '{"email":'));
    const { answers: responses, closed } = await connection.closed(8_000);
    connection.destroy();
    expect(closed).toBe(true);
    expect(responses.map(({ status, body }) => [status, body.error.code])).toEqual([[408, 'REQUEST_TIMEOUT']]);
    expect(app.logLines.filter((line) => JSON.parse(line).level >= 40)).toEqual([]);
  });

  it('a caller who hangs up in the middle of the body harms no one', async () => {
    const headers = heads('Content-Type: application/json', 'Content-Length: 500');
    const connection = new RawConnection(app).send(requestText(`GET ${path} HTTP/1.1`, headers, '{"email":'));
    await connection.until(() => false, 100);
    connection.socket.resetAndDestroy();
    expect((await inQuery('ada@example.com')).status).toBe(200);
    expect(app.logLines.filter((line) => JSON.parse(line).level >= 40)).toEqual([]);
  });

  it('401: a session and a personal access token, whatever they send (SERVICE-1)', async () => {
    const token = await admin.token();
    for (const { credential: as } of [admin, token]) {
      for (const body of ['{"email":"ada@example.com"}', '{', '']) {
        const { status, headers } = await ask(body, { as: as ?? '' });
        expect([status, headers['www-authenticate']]).toEqual([401, 'Bearer realm="latchkey", error="invalid_token"']);
      }
    }
    expect((await app.anonymous.get('/users/email/exists?email=ada@example.com')).status).toBe(401);
  });

  it('403: another scope, whatever it sends (SERVICE-3, HTTP-4)', async () => {
    for (const scopes of [['FETCH_CONFIG'], []]) {
      const { credential: as } = app.service(scopes);
      for (const body of ['{"email":"ada@example.com"}', '{', '{}']) {
        const { status, body: response } = await ask(body, { as: as ?? '' });
        expect([status, response.message]).toEqual([403, 'Insufficient scope. Required: USER_LOOKUP']);
      }
    }
  });

  it('200: the other spelling of the scope; 401 once the organization is deleted (SERVICE-13, ORG-27)', async () => {
    const { credential: as } = app.service(['user:lookup', 'FETCH_CONFIG']);
    expect((await askFor('ada@example.com', { as: as ?? '' })).body).toEqual(ada());
    await app.deleteOrganization();
    expect((await askFor('ada@example.com', { as: as ?? '' })).status).toBe(401);
  });
});
