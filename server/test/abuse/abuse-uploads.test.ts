import { once } from 'node:events';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { boundary, bytesOf, disposition, formEnd, formOf, formType, part, uploadForm } from '../support/made-forms.ts';
import { onePixel } from '../support/made-pictures.ts';
import { RawConnection, type RawOutcome, sendRaw } from '../support/raw-http.ts';
import { type Client, TestApp } from '../support/test-app.ts';

const fileBytesMax = 1_048_576;
const bodyBytesMax = fileBytesMax + 16_384;
const picture = onePixel();
const good = uploadForm(picture);
const png = picture.toString('latin1');

describe('I3: forms that are not what an upload is (PICTURE-8, PICTURE-9, PICTURE-11)', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
  });
  afterAll(() => app.close());
  afterEach(expectNoFaults);

  /** Whatever was sent, nothing of it was a fault of the service. */
  function expectNoFaults(): void {
    const faults = app.logLines.map((line) => JSON.parse(line)).filter(({ level }) => level >= 50);
    expect(faults).toEqual([]);
  }

  interface Sent {
    readonly path?: string;
    readonly from?: Client;
    readonly method?: string;
    /** `null`: none. */
    readonly type?: string | null;
    readonly headers?: readonly string[];
    readonly body?: Buffer;
    /** Announced bytes; `null`: the body is chunked. */
    readonly announced?: number | null;
  }

  /** The bytes of a request, its body as it is given. */
  function request({ path = '/users/dp', from = admin, method = 'PUT', type = formType, ...given }: Sent): Buffer {
    const { body = good, announced = body.length, headers = [] } = given;
    const lines = [
      `${method} /api/v1${path} HTTP/1.1`,
      'Host: x',
      ...(from.credential === null ? [] : [`Authorization: Bearer ${from.credential}`]),
      ...(type === null ? [] : [`Content-Type: ${type}`]),
      announced === null ? 'Transfer-Encoding: chunked' : `Content-Length: ${announced}`,
      ...headers,
    ];
    return Buffer.concat([bytesOf(`${lines.join('\r\n')}\r\n\r\n`), body]);
  }

  const chunk = (bytes: Buffer) => Buffer.concat([bytesOf(`${bytes.length.toString(16)}\r\n`), bytes, bytesOf('\r\n')]);
  const chunked = (...pieces: readonly Buffer[]) => Buffer.concat([...pieces.map(chunk), bytesOf('0\r\n\r\n')]);
  const told = ({ answers: responses }: RawOutcome) =>
    responses.map(({ status, body }) => `${status} ${body?.error?.code ?? 'done'}`);
  const send = async (sent: Sent) => told(await sendRaw(app, request(sent)))[0];

  const invalid = '400 VALIDATION_ERROR';
  const unsupported = '415 UNSUPPORTED_MEDIA_TYPE';
  const tooLarge = '413 PAYLOAD_TOO_LARGE';
  const form = 'multipart/form-data';

  const cases: readonly (readonly [string, Sent, string])[] = [
    ['an ordinary form', {}, '201 done'],
    ['with a header of 1 MB', { body: formOf(part(png, disposition, `X: ${'y'.repeat(1_040_000)}`)) }, '201 done'],
    ['with 5,000 headers', { body: formOf(part(png, disposition, ...Array<string>(5_000).fill('X: y'))) }, '201 done'],
    [
      'with a path and NUL in its name',
      { body: formOf(part(png, disposition.replace('p.png', '/../\0'))) },
      '201 done',
    ],
    ['two files', { body: formOf(part(png), part(png)) }, invalid],
    ['10,000 files', { body: formOf(...Array<string>(10_000).fill(part(''))) }, invalid],
    ['a megabyte of boundaries', { body: bytesOf(`\r\n--${boundary}`.repeat(120_000)) }, invalid],
    ['a megabyte of line breaks', { body: bytesOf('\r\n'.repeat(520_000)) }, invalid],
    ['a megabyte in a part without name', { body: formOf(part('x'.repeat(fileBytesMax), 'X: y')) }, invalid],
    ['a file in another field', { body: formOf(part(png, disposition.replace('"file"', '"picture"'))) }, invalid],
    ['text in the field', { body: formOf(part(png, 'Content-Disposition: form-data; name="file"')) }, invalid],
    ['text beside the file', { body: formOf(part(png), part('', disposition.split('; f')[0] ?? '')) }, invalid],
    ['no part', { body: bytesOf(formEnd) }, invalid],
    ['no end', { body: bytesOf(part(png)) }, invalid],
    ['cut off', { body: good.subarray(0, 100) }, invalid],
    ['line feeds', { body: bytesOf(good.toString('latin1').replaceAll('\r\n', '\n')) }, invalid],
    ['no boundary', { type: form }, invalid],
    ['an empty boundary', { type: `${form}; boundary=""` }, invalid],
    ['another boundary', { type: `${form}; boundary=other` }, invalid],
    ['a boundary of 71', { type: `${form}; boundary=${'x'.repeat(71)}` }, invalid],
    ['a boundary like a pattern', { type: `${form}; boundary="(.*)*"` }, invalid],
    ['an empty file', { body: formOf(part('')) }, '400 BAD_REQUEST'],
    ['a file in base64', { body: formOf(part(picture.toString('base64'))) }, unsupported],
    ['multipart/mixed', { type: `multipart/mixed; boundary=${boundary}` }, unsupported],
    ['an ordinary form type', { type: 'application/x-www-form-urlencoded' }, unsupported],
    ['the picture itself', { type: 'image/png', body: picture }, unsupported],
    ['JSON', { type: 'application/json', body: bytesOf('{"file":"x"}') }, unsupported],
    ['no type', { type: null }, unsupported],
    ['a compressed form', { headers: ['Content-Encoding: gzip'] }, unsupported],
    ['a nonsense type', { type: ';;==' }, unsupported],
    ['nothing', { body: Buffer.alloc(0) }, invalid],
    ['nothing, and no type', { type: null, body: Buffer.alloc(0) }, invalid],
    ['nothing, in chunks', { body: chunked(), announced: null }, invalid],
    ['two types', { headers: ['Content-Type: image/png'] }, '400 BAD_REQUEST'],
    ['1 MB in the file', { body: formOf(part('x'.repeat(fileBytesMax))) }, unsupported],
    ['a byte more in the file', { body: formOf(part('x'.repeat(fileBytesMax + 1))) }, tooLarge],
    ['the largest body', { body: Buffer.alloc(bodyBytesMax, 'x') }, invalid],
    ['a byte more in the body', { body: Buffer.alloc(bodyBytesMax + 1, 'x') }, tooLarge],
  ];

  it.each(cases)('%s', async (_, sent, expected) => {
    expect(await send(sent)).toBe(expected);
  });

  /** Requests that HTTP itself rejects before anything else. */
  const isForHttp = ([, { headers, body }]: (typeof cases)[number]) =>
    headers !== undefined || (body?.length ?? 0) > bodyBytesMax;

  it.each(cases.filter(isForHttp))('the same without a credential: %s (HTTP-2)', async (_, sent, expected) => {
    expect(await send({ ...sent, from: app.anonymous })).toBe(expected);
  });

  it.each(cases.filter((one) => !isForHttp(one)))(
    '401 without a credential, and 403 by a member on the logo, whatever is sent: %s (HTTP-2)',
    async (_, sent) => {
      expect(await send({ ...sent, from: app.anonymous })).toBe('401 UNAUTHORIZED');
      expect(await send({ ...sent, from: member, path: '/org/logo' })).toBe('403 ADMIN_REQUIRED');
    },
  );

  it('413, 401 and 403 come before a body that never comes', async () => {
    const nothing = Buffer.alloc(0);
    const large = { body: nothing, announced: bodyBytesMax + 1 };
    expect(await send(large)).toBe(tooLarge);
    const usual = { body: nothing, announced: 1_000_000 };
    expect(await send({ ...usual, from: app.anonymous })).toBe('401 UNAUTHORIZED');
    expect(await send({ ...usual, from: member, path: '/org/logo' })).toBe('403 ADMIN_REQUIRED');
  });

  it('413: more than announced beforehand, in chunks, is not read to its end', async () => {
    const endless = Array.from({ length: 20 }, () => chunk(Buffer.alloc(65_536)));
    expect(await send({ body: Buffer.concat(endless), announced: null })).toBe(tooLarge);
  });

  it('201: however it is cut in chunks', async () => {
    const single = Array.from(good, (_, at) => good.subarray(at, at + 1));
    expect(await send({ body: chunked(...single), announced: null })).toBe('201 done');
  });

  it('one after another on one connection; a form that is refused ends it', async () => {
    const bad = request({ body: formOf(part(png), part(png)) });
    const connection = new RawConnection(app).send(Buffer.concat([request({}), request({}), bad]));
    const outcome = await connection.closed();
    connection.destroy();
    expect([told(outcome), outcome.closed]).toEqual([['201 done', '201 done', invalid], true]);
  });

  it('408: announced and never sent in full, and nothing is stored', async () => {
    const { server } = app.app;
    const { headersTimeout, requestTimeout } = server;
    // The limits themselves are tested elsewhere; that they fire here is seen sooner with shorter ones.
    Object.assign(server, { headersTimeout: 1_000, requestTimeout: 1_000 });
    const before = await app.audit();
    const connection = new RawConnection(app).send(request({}).subarray(0, -10));
    const outcome = await connection.closed(10_000);
    Object.assign(server, { headersTimeout, requestTimeout });
    connection.destroy();
    expect([told(outcome), outcome.closed]).toEqual([['408 REQUEST_TIMEOUT'], true]);
    expect(await app.audit()).toEqual(before);
  });

  it('a sender that hangs up in the middle leaves nothing, and everyone else is served', async () => {
    const before = await app.audit();
    const headLength = request({ body: Buffer.alloc(0), announced: good.length }).length;
    for (const length of [0, 1, 60, good.length - 1]) {
      const arrived = once(app.app.server, 'request');
      const connection = new RawConnection(app).send(request({}).subarray(0, headLength + length));
      await arrived;
      connection.destroy();
      await connection.closed();
      expect((await member.get('/users/dp')).status).toBe(200);
    }
    expect(await app.audit()).toEqual(before);
  });

  it('other operations take JSON of at most 1 MB, and no form', async () => {
    const json = (length: number) => ({
      path: '/org',
      method: 'PATCH',
      type: 'application/json',
      body: bytesOf(`{"x":"${'y'.repeat(length - 8)}"}`),
    });
    expect(await send(json(fileBytesMax))).toBe('200 done');
    expect(await send(json(fileBytesMax + 1))).toBe(tooLarge);
    const announcement = { body: Buffer.alloc(0), announced: fileBytesMax + 1, from: app.anonymous };
    expect(await send({ ...json(8), ...announcement })).toBe(tooLarge);
    expect(await send({ ...json(fileBytesMax + 1), body: chunked(json(fileBytesMax + 1).body), announced: null })).toBe(
      tooLarge,
    );
    for (const [method, path] of [
      ['PATCH', '/org'],
      ['POST', '/users'],
      ['PUT', `/users/${admin.userId}`],
    ] as const) {
      expect(await send({ method, path })).toBe(unsupported);
    }
    // A method that takes no body takes no form either.
    expect(await send({ method: 'DELETE' })).toBe(unsupported);
  });
});
