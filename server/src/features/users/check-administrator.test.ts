import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, TestApp } from '../../../test/support/test-app.ts';

describe('GET /users/:id/adminCheck', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
  });
  afterAll(() => app.close());

  const check = (client: Client, id: string) => client.get(`/users/${id}/adminCheck`);

  it('200: for an administrator, whoever the id names: the answer is about the caller (USER-41)', async () => {
    for (const id of [admin.userId, member.userId, member.userId.toUpperCase()]) {
      const { status, body } = await check(admin, id);
      expect([status, body]).toEqual([200, { message: expect.any(String) }]);
    }
  });

  it('403: for a member, whatever the id, their own included (USER-41, HTTP-4)', async () => {
    for (const id of [member.userId, admin.userId, 'f'.repeat(24), 'x']) {
      const { status, body } = await check(member, id);
      expect([status, body.error.code, body.message]).toEqual([403, 'ADMIN_REQUIRED', 'Admin access required']);
    }
  });

  it('200 and 403: what counts is the role at this moment (AUTH-29)', async () => {
    const token = await member.token({ scopes: ['user:read'] });
    await app.promote(member.userId);
    expect([(await check(member, admin.userId)).status, (await check(token, admin.userId)).status]).toEqual([200, 200]);
    await app.demote(member.userId);
    expect([(await check(member, admin.userId)).status, (await check(token, admin.userId)).status]).toEqual([403, 403]);
  });

  it('404: an unknown id and a deleted user’s (USER-41)', async () => {
    const { body } = await admin.post('/users', { fullName: 'Gone', email: 'gone@example.com' });
    expect((await check(admin, body._id)).status).toBe(200);
    await app.deleteUser(body._id);
    for (const id of [body._id, 'f'.repeat(24)]) {
      const response = await check(admin, id);
      expect([response.status, response.body.error.code]).toEqual([404, 'NOT_FOUND']);
    }
  });

  it.each(['x', 'a'.repeat(23), 'a'.repeat(25)])('400: %j is no id (HTTP-19)', async (id) => {
    const { status, body } = await check(admin, id);
    expect([status, body.error.details[0].field]).toEqual([400, 'params.id']);
  });

  it('401 without a credential, 403 without the scope (ERR-14, ERR-15)', async () => {
    expect((await check(app.anonymous, admin.userId)).status).toBe(401);
    const token = await admin.token({ scopes: ['user:write', 'org:admin'] });
    expect((await check(token, admin.userId)).body.message).toBe('Insufficient scope. Required: user:read');
  });
});
