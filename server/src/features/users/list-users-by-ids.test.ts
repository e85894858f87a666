import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addManyUsers } from '../../../test/support/many-users.ts';
import { RawConnection } from '../../../test/support/raw-http.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';

/** Values that a body may have besides itself and the array in it. */
const idsMax = 20_000 - 2;

describe('POST /users/by-ids', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;
  let ids: string[];

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
    ids = await addManyUsers(app, 300);
  });
  afterAll(() => app.close());

  const find = (userIds: unknown) => member.post('/users/by-ids', { userIds });
  const idsOf = (body: Json): string[] => body.map(({ _id }: Json) => _id);
  const unknown = (count: number) => Array.from({ length: count }, (_, at) => `f${at.toString(16).padStart(23, '0')}`);

  it('200: exactly these fields, for any member (USER-20)', async () => {
    const { status, body } = await find([admin.userId]);
    const orgId = (await admin.get(`/users/${admin.userId}`)).body.orgId;
    const user = { _id: admin.userId, fullName: 'Ada Lovelace', email: 'ada@example.com', orgId };
    expect([status, body]).toEqual([200, [user]]);
  });

  it('200: in the order of the ids, each once (USER-20)', async () => {
    const backwards = [...ids].reverse();
    expect(idsOf((await find(backwards)).body)).toEqual(backwards);
    const [a = '', b = '', c = ''] = ids;
    expect(idsOf((await find([c, a, c, b, a])).body)).toEqual([c, a, b]);
  });

  it('200: upper case names the same users, and is answered in lower case (HTTP-20)', async () => {
    const [a = '', b = ''] = ids;
    expect(idsOf((await find([b.toUpperCase(), a, b])).body)).toEqual([b, a]);
  });

  it('200: unknown, deleted and other things’ ids are left out (USER-21)', async () => {
    const [, , , gone = '', kept = ''] = ids;
    await app.deleteUser(gone);
    const group = await app.services.db.read.selectFrom('user_groups').select('id').executeTakeFirstOrThrow();
    const { orgId } = (await admin.get(`/users/${admin.userId}`)).body;
    const { status, body } = await find([gone, 'f'.repeat(24), group.id, orgId, kept]);
    expect([status, idsOf(body)]).toEqual([200, [kept]]);
    expect((await find(['f'.repeat(24)])).body).toEqual([]);
  });

  it('200: as many ids as a body holds; 400: one more (USER-20)', async () => {
    const many = [...unknown(idsMax - 2), admin.userId, member.userId];
    const { status, body } = await find(many);
    expect([status, idsOf(body)]).toEqual([200, [admin.userId, member.userId]]);
    const refused = await find([...many, admin.userId]);
    expect([refused.status, refused.body.error.details[0].field]).toEqual([400, 'body']);
  });

  it.each([
    ['no body', undefined, 'body'],
    ['no ids', {}, 'body.userIds'],
    ['an empty list', { userIds: [] }, 'body.userIds'],
    ['null', { userIds: null }, 'body.userIds'],
    ['one id alone', { userIds: 'a'.repeat(24) }, 'body.userIds'],
    ['an object', { userIds: { 0: 'a'.repeat(24), length: 1 } }, 'body.userIds'],
    ['a short id', { userIds: ['a'.repeat(24), 'a'.repeat(23)] }, 'body.userIds.1'],
    ['a long id', { userIds: ['a'.repeat(25)] }, 'body.userIds.0'],
    ['other letters', { userIds: ['a'.repeat(24), 'b'.repeat(24), `${'a'.repeat(23)}g`] }, 'body.userIds.2'],
    ['full-width letters', { userIds: ['ａ'.repeat(24)] }, 'body.userIds.0'],
    ['an id and a line break', { userIds: [`${'a'.repeat(24)}\n`] }, 'body.userIds.0'],
    ['a number', { userIds: [1] }, 'body.userIds.0'],
    ['null in the list', { userIds: [null] }, 'body.userIds.0'],
    ['a list in the list', { userIds: [['a'.repeat(24)]] }, 'body.userIds.0'],
    ['a condition', { userIds: [{ $ne: null }] }, 'body.userIds.0'],
    ['an array as the body', ['a'.repeat(24)], 'body'],
  ])('400: %s, and the place is named (USER-20, HTTP-19)', async (_, body, field) => {
    const { status, body: response } = await member.post('/users/by-ids', body);
    expect([status, response.error.code, response.error.details[0].field]).toEqual([400, 'VALIDATION_ERROR', field]);
  });

  it('400: of many bad ids 20 are named (ERR-3)', async () => {
    const { status, body } = await find(Array.from({ length: 500 }, () => 'x'));
    expect([status, body.error.details.length]).toEqual([400, 20]);
  });

  it('401 without a credential, 403 without the scope, whatever the body (HTTP-4)', async () => {
    expect((await app.anonymous.post('/users/by-ids', {})).status).toBe(401);
    const token = await admin.token({ scopes: ['user:write', 'user:invite'] });
    for (const userIds of [[admin.userId], [], ['x']]) {
      const { status, body } = await token.post('/users/by-ids', { userIds });
      expect([status, body.message]).toEqual([403, 'Insufficient scope. Required: user:read']);
    }
    expect(
      (await (await member.token({ scopes: ['user:read'] })).post('/users/by-ids', { userIds: [ids[0]] })).status,
    ).toBe(200);
  });

  it('401: the body ends after the token was revoked or its owner deleted (AUTH-27)', async () => {
    const owner = await app.member(admin, 'late@example.com');
    const token = await owner.token();
    const body = JSON.stringify({ userIds: [admin.userId] });
    const head = [
      'POST /api/v1/users/by-ids HTTP/1.1',
      'Host: x',
      'Content-Type: application/json',
      `Content-Length: ${body.length}`,
    ];
    const held = [token, owner].map(({ credential }) => {
      const connection = new RawConnection(app);
      const text = [...head, `Authorization: Bearer ${credential}`, '', body.slice(0, -1)].join('\r\n');
      return connection.send(text);
    });
    // Both have been admitted once the service has responded to a later request.
    await member.get('/org');
    await owner.delete(`/personal-access-tokens/${token.tokenId}`);
    await app.deleteUser(owner.userId);
    const outcomes = held.map((connection) => connection.send(body.slice(-1)).until((now) => now.answers.length > 0));
    const responses = (await Promise.all(outcomes)).flatMap((outcome) => outcome.answers);
    expect(responses.map((response) => response.status)).toEqual([401, 401]);
    for (const connection of held) connection.destroy();
  });

  it('400: of many wrong ids twenty are named (ERR-3)', async () => {
    const { status, body } = await find(Array.from({ length: 10_000 }, () => 'x'));
    expect([status, body.error.details.length]).toEqual([400, 20]);
    expect(body.error.details[19].field).toBe('body.userIds.19');
  });
});
