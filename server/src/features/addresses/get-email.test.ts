import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, TestApp } from '../../../test/support/test-app.ts';

describe('GET /users/:id/email', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;
  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
  });
  afterAll(() => app.close());

  it('200: the administrator and the user, in a session and with a token (ADDRESS-11)', async () => {
    const tokens = [await admin.token({ scopes: ['user:read'] }), await member.token({ scopes: ['user:read'] })];
    for (const client of [admin, member, ...tokens]) {
      const { status, body } = await client.get(`/users/${member.userId}/email`);
      expect([status, body]).toEqual([200, { email: 'grace@example.com' }]);
    }
  });

  it('403: any other member, for users who are here or not; 404: an administrator for no user (ADDRESS-11, ERR-17)', async () => {
    const unknown = '0'.repeat(24);
    for (const id of [admin.userId, unknown]) expect((await member.get(`/users/${id}/email`)).status).toBe(403);
    const gone = await app.member(admin, 'gone@example.com');
    await app.deleteUser(gone.userId);
    for (const id of [unknown, gone.userId]) expect((await admin.get(`/users/${id}/email`)).status).toBe(404);
    expect((await admin.get('/users/x/email')).status).toBe(400);
    const narrow = await member.token({ scopes: ['user:write'] });
    expect((await narrow.get(`/users/${member.userId}/email`)).status).toBe(403);
  });

  it('shows when an address was verified to administrators and the user alone (ADDRESS-1)', async () => {
    const since = new Date(app.clock.now()).toISOString();
    const other = await app.member(admin, 'other@example.com');
    const seen = async (client: Client, path: string) => {
      const { body } = await client.get(path);
      const one = Array.isArray(body) ? body.find(({ _id }) => _id === member.userId) : (body.users?.[0] ?? body);
      return one.emailVerifiedAt;
    };
    for (const path of [`/users/${member.userId}`, '/users', '/users?search=grace@']) {
      expect([await seen(admin, path), await seen(member, path)]).toEqual([since, since]);
      expect(await seen(other, path)).toBeUndefined();
    }
    await member.patch(`/users/${member.userId}/email`, { email: 'hopper@example.com' });
    expect([await seen(admin, '/users?search=hopper@'), await seen(member, `/users/${member.userId}`)]).toEqual([
      null,
      null,
    ]);
  });
});
