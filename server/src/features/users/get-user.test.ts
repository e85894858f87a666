import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, TestApp } from '../../../test/support/test-app.ts';

describe('GET /users/:id', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com', 'Grace Hopper');
  });
  afterAll(() => app.close());

  it('200: any member sees any user record (USER-2, USER-3)', async () => {
    const { status, body } = await member.get(`/users/${admin.userId}`);
    expect(status).toBe(200);
    expect(body).toMatchObject({ _id: admin.userId, id: admin.userId, slug: 'user-1001', email: 'ada@example.com' });
    expect(body).toMatchObject({ fullName: 'Ada Lovelace', hasLoggedIn: true, isDeleted: false });
  });

  it('200: every field that is set, middleName included, and none besides (USER-2, USER-3)', async () => {
    const address = { addressLine1: '1 Main St', city: 'London', state: 'LDN', postCode: 'E1', country: 'UK' };
    const names = { first_name: 'Grace', middle_name: 'Brewster', last_name: 'Hopper', mobile: '+12125550100' };
    await app.services.db.transaction((tx) =>
      tx
        .updateTable('users')
        .set({ ...names, designation: 'Admiral', address: JSON.stringify(address) })
        .where('id', '=', member.userId)
        .execute(),
    );
    const { body } = await member.get(`/users/${member.userId}`);
    expect(body).toEqual({
      _id: member.userId,
      id: member.userId,
      slug: 'user-1002',
      fullName: 'Grace Hopper',
      firstName: 'Grace',
      middleName: 'Brewster',
      lastName: 'Hopper',
      email: 'grace@example.com',
      emailVerifiedAt: '2026-11-27T20:17:00.123Z',
      mobile: '+12125550100',
      designation: 'Admiral',
      address,
      hasLoggedIn: true,
      orgId: expect.stringMatching(/^[0-9a-f]{24}$/),
      isDeleted: false,
      createdAt: '2026-11-27T20:17:00.123Z',
      updatedAt: '2026-11-27T20:17:00.123Z',
    });
  });

  it('200: nothing of a password or hash is in any record (ERR-6)', async () => {
    const { text } = await admin.get(`/users/${admin.userId}`);
    expect(text).not.toMatch(/password|hash|argon|\$/i);
  });

  it('200: an id in upper case (HTTP-20)', async () => {
    const { status, body } = await admin.get(`/users/${member.userId.toUpperCase()}`);
    expect([status, body._id]).toEqual([200, member.userId]);
  });

  it('404: an unknown user and a deleted one are told apart by no one (USER-2, ERR-18)', async () => {
    const gone = await app.member(admin, 'gone@example.com');
    expect((await admin.get(`/users/${gone.userId}`)).status).toBe(200);
    await app.deleteUser(gone.userId);
    const deleted = await admin.get(`/users/${gone.userId}`);
    const unknown = await admin.get(`/users/${'f'.repeat(24)}`);
    expect([deleted.status, unknown.status]).toEqual([404, 404]);
    expect(deleted.body.message).toBe(unknown.body.message);
    expect(deleted.body.error.code).toBe('NOT_FOUND');
  });

  it.each(['x', 'a'.repeat(23), 'a'.repeat(25), `${'a'.repeat(23)}g`, '%20'])(
    '400: %j is no id (HTTP-19)',
    async (id) => {
      const { status, body } = await admin.get(`/users/${id}`);
      expect([status, body.error.code, body.error.details[0].field]).toEqual([400, 'VALIDATION_ERROR', 'params.id']);
    },
  );

  it('401 without a credential, 403 without the scope, before the id is looked at (HTTP-2)', async () => {
    expect((await app.anonymous.get('/users/x')).status).toBe(401);
    const token = await member.token({ scopes: ['org:read'] });
    for (const id of ['x', member.userId, 'f'.repeat(24)]) {
      const { status, body, headers } = await token.get(`/users/${id}`);
      expect([status, body.message]).toEqual([403, 'Insufficient scope. Required: user:read']);
      expect(headers.get('www-authenticate')).toBe('Bearer error="insufficient_scope", scope="user:read"');
    }
    const reader = await member.token({ scopes: ['user:read'] });
    expect((await reader.get(`/users/${member.userId}`)).status).toBe(200);
  });
});
