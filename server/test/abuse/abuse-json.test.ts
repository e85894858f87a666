import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, organization, password, TestApp, type TestResponse } from '../support/test-app.ts';

const json = { 'content-type': 'application/json' };
let taken = 0;

/** The members of a good user, without the braces. */
function members(): string {
  taken += 1;
  return `"fullName":"Ann","email":"ann${taken}@example.com"`;
}

function bytes(...parts: (string | readonly number[])[]): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(parts.flatMap((part) => [...(typeof part === 'string' ? Buffer.from(part) : part)]));
}

describe('abuse of JSON', () => {
  let app: TestApp;
  let admin: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  const post = (raw: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = json): Promise<TestResponse> =>
    admin.call('POST', '/users', { raw, headers });

  const invalid = [400, 'VALIDATION_ERROR', true];

  /** Status and code, and whether something was said about what is wrong. */
  async function outcome(response: Promise<TestResponse>): Promise<unknown[]> {
    const { status, body } = await response;
    return [status, body.error?.code, (body.error?.details?.length ?? 0) > 0];
  }

  describe('H4: form', () => {
    it.each([
      ['200,000 arrays deep', () => `{${members()},"x":${'['.repeat(200_000)}${']'.repeat(200_000)}}`],
      ['150,000 objects deep', () => `${'{"a":'.repeat(150_000)}1${'}'.repeat(150_000)}`],
      ['200,000 arrays that do not end', () => '['.repeat(200_000)],
      ['33 levels (HTTP-12)', () => `{${members()},"x":${'['.repeat(32)}${']'.repeat(32)}}`],
      ['a number for a name, too large for any number', () => `{"fullName":1e999,"email":"a@example.com"}`],
      ['a name twice', () => `{${members()},"fullName":"Eve"}`],
      ['a name twice, one spelled with escapes', () => `{${members()},"\\u0066ullName":"Eve"}`],
      ['a name twice, deeper', () => `{${members()},"x":[{"a":1,"a":2}]}`],
      ['the empty name twice', () => `{${members()},"":1,"":2}`],
      ['a byte order mark', () => `\ufeff{${members()}}`],
      ['garbage after the end', () => `{${members()}}}`],
      ['two values', () => `{${members()}}{}`],
      ['no value', () => ' '],
      ['a comma too many', () => `{${members()},}`],
      ['a comment', () => `{${members()}/**/}`],
      ['NaN', () => `{${members()},"x":NaN}`],
      ['single quotes', () => `{'fullName':'Ann'}`],
      ['a raw line break in a text', () => `{"fullName":"A\nnn","email":"a@example.com"}`],
      ['a lone surrogate, escaped (HTTP-13)', () => `{${members()},"x":"\\ud800"}`],
      ['a lone surrogate in a name', () => `{${members()},"\\udfff":1}`],
      ['NUL, escaped (HTTP-13)', () => `{${members()},"x":"\\u0000"}`],
      ['NUL in a name', () => `{${members()},"a\\u0000":1}`],
      ['null', () => 'null'],
      ['a number', () => '1'],
      ['a text', () => '"fullName"'],
      ['an array', () => `[{${members()}}]`],
    ])('400: %s', async (_, body) => {
      expect(await outcome(post(body()))).toEqual(invalid);
    });

    it.each([
      ['an overlong form', [0xc0, 0xaf]],
      ['a surrogate', [0xed, 0xa0, 0x80]],
      ['a byte that never occurs', [0xff]],
      ['a sequence cut short', [0xe2, 0x82]],
      ['beyond Unicode', [0xf4, 0x90, 0x80, 0x80]],
    ])('400: invalid UTF-8, %s (HTTP-13)', async (_, broken) => {
      expect(await outcome(post(bytes(`{${members()},"x":"`, broken, '"}')))).toEqual(invalid);
    });

    it('400: UTF-16', async () => {
      expect(await outcome(post(Uint8Array.from(Buffer.from(`{${members()}}`, 'utf16le'))))).toEqual(invalid);
    });

    it('201: 32 levels', async () => {
      expect((await post(`{${members()},"x":${'['.repeat(31)}${']'.repeat(31)}}`)).status).toBe(201);
    });

    it('413: a million keys; 400: more values than anything takes; and as many as that are no work to speak of', async () => {
      const keys = (count: number) => Array.from({ length: count }, (_, place) => `"k${place}":0`).join(',');
      expect((await post(`{${members()},${keys(1_000_000)}}`)).status).toBe(413);
      const startedMs = performance.now();
      expect(await outcome(post(`{${members()},${keys(90_000)}}`))).toEqual(invalid);
      expect(await outcome(post(`{${members()},${keys(20_001)}}`))).toEqual(invalid);
      expect((await post(`{${members()},${keys(19_000)}}`)).status).toBe(201);
      expect(performance.now() - startedMs).toBeLessThan(2_000);
    });
  });

  describe('H5: names that reach for prototypes (HTTP-15)', () => {
    it.each(['__proto__', 'constructor', 'prototype', '\\u005f_proto__'])(
      '400: %s anywhere in a body',
      async (name) => {
        const evil = `"${name}":{"isAdmin":true,"isDeleted":true}`;
        expect(await outcome(post(`{${members()},${evil}}`))).toEqual(invalid);
        expect(await outcome(post(`{${members()},"address":{"city":"X",${evil}}}`))).toEqual(invalid);
        expect(await outcome(post(`{${members()},"x":[[{${evil}}]]}`))).toEqual(invalid);
      },
    );

    it.each(['__proto__=1', 'constructor=1', 'prototype=1', '%5F_proto__=1'])('400: ?%s', async (query) => {
      expect(await outcome(admin.get(`/users?${query}`))).toEqual(invalid);
    });

    it.each(['a[__proto__]=1', 'constructor.prototype.x=1', '__proto__[isAdmin]=true'])(
      '?%s is a name like any other, and nothing is polluted',
      async (query) => {
        expect((await admin.get(`/personal-access-tokens/admin?${query}`)).status).toBeLessThan(500);
        expect(Object.keys(Object.prototype)).toEqual([]);
        expect(({} as Record<string, unknown>)['isAdmin']).toBeUndefined();
      },
    );

    it('400: in a nested address of a new organization', async () => {
      const empty = await TestApp.start();
      const body = JSON.stringify({ ...organization, permanentAddress: { city: 'X' } });
      const raw = body.replace('"city"', '"__proto__":{"a":1},"city"');
      expect((await empty.anonymous.call('POST', '/org', { raw, headers: json })).status).toBe(400);
      expect((await empty.anonymous.get('/org/exists')).body).toEqual({ exists: false });
      await empty.close();
    });
  });

  describe('H6: another type than asked for (HTTP-14)', () => {
    const wrong: readonly (readonly [string, unknown])[] = [
      ['an array', ['Ann']],
      ['an object', { $ne: null }],
      ['an object with toString', { toString: 'Ann' }],
      ['a number', 7],
      ['true', true],
    ];
    it.each(wrong)('400: %s for a text', async (_, value) => {
      expect(await outcome(admin.post('/users', { fullName: value, email: 'h6@example.com' }))).toEqual(invalid);
      expect(await outcome(admin.post('/users', { fullName: 'Ann', email: value }))).toEqual(invalid);
      expect(
        await outcome(admin.post('/users', { fullName: 'Ann', email: 'h6@example.com', designation: value })),
      ).toEqual(invalid);
      expect(await outcome(app.anonymous.post('/userAccount/initAuth', { email: value }))).toEqual(invalid);
      expect(await outcome(admin.post('/personal-access-tokens', { name: value }))).toEqual(invalid);
    });

    it.each([
      ['/personal-access-tokens', { name: 'x', expiryDays: '30' }],
      ['/personal-access-tokens', { name: 'x', expiryDays: [30] }],
      ['/personal-access-tokens', { name: 'x', scopes: 'user:read' }],
      ['/personal-access-tokens', { name: 'x', scopes: { 0: 'user:read', length: 1 } }],
      ['/userAccount/logout/manual', { all: 'true' }],
      ['/userAccount/logout/manual', { all: 1 }],
      ['/userAccount/logout/manual', []],
    ])('400: %s %j', async (path, body) => {
      expect(await outcome(admin.post(path, body))).toEqual(invalid);
    });

    it('400: {"$ne":null} is no password and no address to sign in with', async () => {
      const begun = await app.anonymous.post('/userAccount/initAuth');
      const headers = { 'x-session-token': begun.headers.get('x-session-token') ?? '' };
      const signIn = (email: unknown, secret: unknown) =>
        app.anonymous.post(
          '/userAccount/authenticate',
          { method: 'password', email, credentials: { password: secret } },
          { headers },
        );
      expect(await outcome(signIn('ada@example.com', { $ne: null }))).toEqual(invalid);
      expect(await outcome(signIn({ $ne: null }, password))).toEqual(invalid);
      expect(await outcome(signIn(['ada@example.com'], password))).toEqual(invalid);
    });

    it('400: numbers of the query are not guessed', async () => {
      for (const page of ['1e0', '0x1', '+1', '01', ' 1', '1.0', '-1', '0', 'NaN', '1&page=2']) {
        expect(await outcome(admin.get(`/personal-access-tokens/admin?page=${page}`))).toEqual(invalid);
      }
    });
  });

  describe('H7: content types (HTTP-16)', () => {
    it.each([
      'text/plain',
      'text/json',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'application/json-patch+json',
      'application/vnd.api+json',
      'application/xml',
      'application/json; charset=iso-8859-1',
      'application/json; charset=utf-16',
      'application/json, text/plain',
      'application/jsonx',
      'garbage',
    ])('415: %s', async (type) => {
      const { status, body } = await post(`{${members()}}`, { 'content-type': type });
      expect([status, body.error.code]).toEqual([415, 'UNSUPPORTED_MEDIA_TYPE']);
    });

    it('415: none at all', async () => {
      expect((await admin.call('POST', '/users', { raw: bytes(`{${members()}}`) })).status).toBe(415);
    });

    it.each([
      'application/json',
      'APPLICATION/JSON',
      'application/json;charset=UTF-8',
      'application/json; charset="utf-8"',
    ])('201: %s', async (type) => {
      expect((await post(`{${members()}}`, { 'content-type': type })).status).toBe(201);
    });

    it('415: form-encoded JSON', async () => {
      const form = { 'content-type': 'application/x-www-form-urlencoded' };
      expect((await post(`body=${encodeURIComponent(`{${members()}}`)}`, form)).status).toBe(415);
    });
  });
});
