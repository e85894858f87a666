import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, TestApp } from '../../../test/support/test-app.ts';

describe('GET /users/internal/:id', () => {
  let app: TestApp;
  let admin: Client;
  let service: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    service = app.service();
  });
  afterAll(() => app.close());

  it('200: exactly these fields, for someone active and for someone deleted (SERVICE-4)', async () => {
    const orgId = (await admin.get(`/users/${admin.userId}`)).body.orgId;
    const ada = { _id: admin.userId, fullName: 'Ada Lovelace', email: 'ada@example.com', orgId };
    const { status, body } = await service.get(`/users/internal/${admin.userId}`);
    expect([status, body]).toEqual([200, { ...ada, hasLoggedIn: true, isDeleted: false }]);

    const added = await admin.post('/users', { fullName: 'Grace', email: 'grace@example.com', designation: 'Admiral' });
    const grace = { _id: added.body._id, fullName: 'Grace', email: 'grace@example.com', orgId, hasLoggedIn: false };
    expect((await service.get(`/users/internal/${grace._id}`)).body).toEqual({ ...grace, isDeleted: false });
    await app.deleteUser(grace._id);
    expect((await service.get(`/users/internal/${grace._id}`)).body).toEqual({ ...grace, isDeleted: true });
    await admin.post(`/users/${grace._id}/restore`);
    expect((await service.get(`/users/internal/${grace._id}`)).body).toEqual({ ...grace, isDeleted: false });
  });

  it('200: an id in upper case, answered in lower case (HTTP-20)', async () => {
    const { status, body } = await service.get(`/users/internal/${admin.userId.toUpperCase()}`);
    expect([status, body._id]).toEqual([200, admin.userId]);
  });

  it('404: unknown, and another thing’s id (ERR-18)', async () => {
    const { orgId } = (await admin.get(`/users/${admin.userId}`)).body;
    for (const id of ['f'.repeat(24), orgId]) {
      const { status, body } = await service.get(`/users/internal/${id}`);
      expect([status, body.error.code]).toEqual([404, 'NOT_FOUND']);
    }
  });

  it.each(['x', 'a'.repeat(23), 'a'.repeat(25), '%00', 'me'])('400: %j is no id (HTTP-19)', async (id) => {
    const { status, body } = await service.get(`/users/internal/${id}`);
    expect([status, body.error.details[0].field]).toEqual([400, 'params.id']);
  });

  it('401: no credential, a session, a personal access token, whatever the id (SERVICE-1)', async () => {
    const token = await admin.token();
    for (const client of [app.anonymous, admin, token]) {
      for (const id of [admin.userId, 'f'.repeat(24), 'x']) {
        expect((await client.get(`/users/internal/${id}`)).status).toBe(401);
      }
    }
  });

  it('403: another scope, whatever the id (SERVICE-3, HTTP-4)', async () => {
    for (const scopes of [['FETCH_CONFIG'], [], ['USER_LOOKUPS'], ['user_lookup']]) {
      for (const id of [admin.userId, 'f'.repeat(24), 'x']) {
        const { status, body } = await app.service(scopes).get(`/users/internal/${id}`);
        expect([status, body.message]).toEqual([403, 'Insufficient scope. Required: USER_LOOKUP']);
      }
    }
  });

  it('401: a scoped token on a user’s route (SERVICE-2)', async () => {
    for (const path of [
      '/users',
      `/users/${admin.userId}`,
      '/users/fetch/with-groups',
      `/users/${admin.userId}/adminCheck`,
    ]) {
      expect((await service.get(path)).status).toBe(401);
    }
  });

  it('401: once the organization is deleted (ORG-27)', async () => {
    await app.deleteOrganization();
    expect((await service.get(`/users/internal/${admin.userId}`)).status).toBe(401);
  });
});
