import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';

describe('DELETE /userGroups/:groupId', () => {
  let app: TestApp;
  let admin: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
  });
  afterAll(() => app.close());

  it('200: the group as deleted; no one is in it, and no list has it (GROUP-9, GROUP-12)', async () => {
    const { body: group } = await admin.post('/userGroups', { name: 'Passing', type: 'custom' });
    await admin.post('/userGroups/add-users', { userIds: [admin.userId], groupIds: [group._id] });
    const { status, body } = await admin.delete(`/userGroups/${group._id}`);
    expect([status, body]).toEqual([200, { ...group, isDeleted: true, users: [], updatedAt: expect.any(String) }]);
    expect((await admin.get(`/userGroups/${group._id}`)).status).toBe(404);
    expect((await admin.get(`/userGroups/${group._id}/users`)).status).toBe(404);
    const lists = [
      '/userGroups',
      '/userGroups/stats/list',
      `/userGroups/users/${admin.userId}`,
      '/users/fetch/with-groups',
    ];
    for (const path of lists) expect((await admin.get(path)).text).not.toContain('Passing');
    expect((await admin.get(`/users?groupIds=${group._id}`)).body.users).toEqual([]);
    expect((await app.audit()).at(-1)).toMatchObject({ action: 'group.deleted', subject_id: group._id });
  });

  it('403: each of the three groups that came with the organization (GROUP-12, GROUP-13)', async () => {
    const { groups } = (await admin.get('/userGroups')).body;
    for (const { _id } of groups.filter((one: Json) => one.isSystem)) {
      const { status, body } = await admin.delete(`/userGroups/${_id}`);
      expect([status, body.error.code]).toEqual([403, 'FORBIDDEN']);
    }
    expect((await admin.get('/userGroups')).body.groups).toEqual(groups);
  });

  it('404: twice, and what is no group', async () => {
    const { body: group } = await admin.post('/userGroups', { name: 'Twice', type: 'custom' });
    await admin.delete(`/userGroups/${group._id}`);
    for (const id of [group._id, 'a'.repeat(24), admin.userId]) {
      expect((await admin.delete(`/userGroups/${id}`)).status).toBe(404);
    }
  });

  it('no one is left in a deleted group, however many are added while it is deleted', async () => {
    const { body: group } = await admin.post('/userGroups', { name: 'Race', type: 'custom' });
    const change = { userIds: [admin.userId], groupIds: [group._id] };
    const add = () => admin.post('/userGroups/add-users', change);
    const calls = [add(), add(), add(), add()];
    // From the first response on, so that the group has members when it is deleted.
    await Promise.race(calls);
    calls.push(admin.delete(`/userGroups/${group._id}`), add(), add(), add());
    const statuses = (await Promise.all(calls)).map(({ status }) => status);
    expect(statuses[4]).toBe(200);
    expect(new Set(statuses.filter((_, place) => place !== 4))).toEqual(new Set([200, 400]));
    const rows = await app.services.db.read
      .selectFrom('group_members')
      .where('group_id', '=', group._id)
      .selectAll()
      .execute();
    expect(rows).toEqual([]);
  });
});
