import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { plain } from '../../../test/support/made-pictures.ts';
import { type Client, TestApp, type TestResponse } from '../../../test/support/test-app.ts';

const none = { errorMessage: 'User picture not found' };
const picture = async (colour: string) => new Uint8Array(await plain(40, 30, colour).png().toBuffer());

/** Expects the headers of every response with or without a picture. */
function expectPrivate({ headers }: TestResponse): void {
  expect([headers.get('cache-control'), headers.get('x-content-type-options')]).toEqual(['no-store', 'nosniff']);
}

describe('GET /users/dp and /org/logo', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
  });
  afterAll(() => app.close());

  it('200: without a picture the answer says so, in JSON (PICTURE-3)', async () => {
    const response = await member.get('/users/dp');
    expect([response.status, response.body]).toEqual([200, none]);
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expectPrivate(response);
  });

  it('204: without a logo there is nothing (PICTURE-6)', async () => {
    const response = await member.get('/org/logo');
    expect([response.status, response.bytes.length, response.headers.get('content-type')]).toEqual([204, 0, null]);
    expectPrivate(response);
    const head = await member.call('HEAD', '/org/logo');
    expect([head.status, head.bytes.length]).toEqual([204, 0]);
  });

  it("200: the caller's own picture, as it was stored, and HEAD tells of it (PICTURE-2)", async () => {
    const stored = await member.upload('/users/dp', await picture('red'));
    const response = await member.get('/users/dp');
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'image/jpeg']);
    expect(response.bytes.equals(stored.bytes)).toBe(true);
    expectPrivate(response);
    const head = await member.call('HEAD', '/users/dp');
    expect([head.status, head.bytes.length, head.headers.get('content-type')]).toEqual([200, 0, 'image/jpeg']);
    expect(head.headers.get('content-length')).toBe(String(stored.bytes.length));
    expectPrivate(head);
    expect((await admin.get('/users/dp')).body).toEqual(none);
  });

  it('200: everyone sees the logo, by session and by token (PICTURE-6)', async () => {
    const stored = await admin.upload('/org/logo', await picture('blue'));
    const token = await member.token({ scopes: ['org:read'] });
    for (const client of [admin, member, token]) {
      const response = await client.get('/org/logo');
      expect([response.status, response.headers.get('content-type')]).toEqual([200, 'image/jpeg']);
      expect(response.bytes.equals(stored.bytes)).toBe(true);
      expectPrivate(response);
    }
    expect((await admin.get('/users/dp')).body).toEqual(none);
  });

  it('200: what another process stores is seen at once', async () => {
    const { db } = app.services;
    await db.transaction((tx) =>
      tx
        .updateTable('pictures')
        .set({ content: Buffer.from('other bytes').toString('base64') })
        .where('owner_id', '=', member.userId)
        .execute(),
    );
    expect((await member.get('/users/dp')).text).toBe('other bytes');
  });

  it('401: without a credential; 403: by a token without the scope (ERR-16)', async () => {
    const users = await member.token({ scopes: ['user:read'] });
    const org = await member.token({ scopes: ['org:read'] });
    for (const path of ['/users/dp', '/org/logo']) expect((await app.anonymous.get(path)).status).toBe(401);
    expect((await users.get('/users/dp')).status).toBe(200);
    expect((await org.get('/users/dp')).body.message).toBe('Insufficient scope. Required: user:read');
    expect((await users.get('/org/logo')).body.message).toBe('Insufficient scope. Required: org:read');
    expect((await app.service().get('/users/dp')).status).toBe(401);
  });

  it('405: other methods are not taken (ERR-19)', async () => {
    for (const path of ['/users/dp', '/org/logo']) {
      const { status, headers } = await admin.post(path, {});
      const allowed = (headers.get('allow') ?? '').split(', ').sort();
      expect([status, allowed]).toEqual([405, ['DELETE', 'GET', 'HEAD', 'PUT']]);
    }
  });
});
