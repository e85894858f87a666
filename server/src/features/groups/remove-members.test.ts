import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';

describe('POST /userGroups/remove-users', () => {
  let app: TestApp;
  let admin: Client;
  let grace: Client;
  let system: Record<string, string>;
  let groupId: string;

  beforeEach(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    grace = await app.member(admin, 'grace@example.com');
    const { groups } = (await admin.get('/userGroups')).body;
    system = Object.fromEntries(groups.map(({ type, _id }: Json) => [type, _id]));
    groupId = (await admin.post('/userGroups', { name: 'Research', type: 'custom' })).body._id;
    await admin.post('/userGroups/add-users', { userIds: [admin.userId, grace.userId], groupIds: [groupId] });
  });
  afterEach(() => app.close());

  const remove = (userIds: unknown, groupIds: unknown, client: Client = admin) =>
    client.post('/userGroups/remove-users', { userIds, groupIds });
  const membersOf = async (id: string | undefined) => (await admin.get(`/userGroups/${id}`)).body.users;

  it('200: each of the users is in none of the groups any more; who was in none stays out (GROUP-14)', async () => {
    const { status, body } = await remove([grace.userId], [groupId, system['standard']]);
    expect([status, body]).toEqual([200, { message: 'Users removed from groups successfully' }]);
    expect(await membersOf(groupId)).toEqual([admin.userId]);
    expect((await app.audit()).at(-1)).toMatchObject({
      action: 'group.members-removed',
      details: { userIds: [grace.userId] },
    });
  });

  it('400: ids that do not exist are named, and no one is removed (GROUP-15)', async () => {
    const { status, body } = await remove([grace.userId, 'a'.repeat(24)], [groupId]);
    expect([status, body.error.details[0].field]).toEqual([400, 'body.userIds.1']);
    expect(await membersOf(groupId)).toEqual([admin.userId, grace.userId]);
  });

  it('400: no one leaves everyone, and the rest is not done either (GROUP-16)', async () => {
    const { status, body } = await remove([grace.userId], [groupId, system['everyone']]);
    expect([status, body.error.code]).toEqual([400, 'BAD_REQUEST']);
    expect(await membersOf(groupId)).toEqual([admin.userId, grace.userId]);
    expect(await membersOf(system['everyone'])).toEqual([admin.userId, grace.userId]);
  });

  it('409: the last administrator stays, oneself included, and the rest is not done either (GROUP-17)', async () => {
    const { status, body } = await remove([admin.userId, grace.userId], [groupId, system['admin']]);
    expect([status, body.error.code]).toEqual([409, 'CONFLICT']);
    expect(await membersOf(groupId)).toEqual([admin.userId, grace.userId]);
    expect(await membersOf(system['admin'])).toEqual([admin.userId]);
  });

  it('A5: administrators who remove each other and themselves at once leave one, every time (GROUP-17, STORE-6)', async () => {
    const others = [grace];
    for (const name of ['alan', 'mary', 'joan']) others.push(await app.member(admin, `${name}@example.com`));
    const all = [admin, ...others];
    const ids = all.map(({ userId }) => userId);
    for (let round = 0; round < 8; round += 1) {
      const [left] = (await app.services.db.read
        .selectFrom('group_members')
        .where('group_id', '=', system['admin'] ?? '')
        .select('user_id')
        .execute()) as [Json];
      const someone = all.find(({ userId }) => userId === left.user_id) ?? admin;
      await someone.post('/userGroups/add-users', { userIds: ids, groupIds: [system['admin']] });
      const calls = all.flatMap((client, place) => [
        remove([ids[(place + 1) % ids.length]], [system['admin']], client),
        remove([client.userId], [system['admin']], client),
        client.delete(`/users/${ids[(place + 2) % ids.length]}`),
      ]);
      const statuses = new Set((await Promise.all(calls)).map(({ status }) => status));
      const administrators = await app.services.db.read
        .selectFrom('group_members')
        .where('group_id', '=', system['admin'] ?? '')
        .select('user_id')
        .execute();
      expect(administrators.length).toBeGreaterThanOrEqual(1);
      expect([...statuses].every((status) => [200, 401, 403, 404, 409, 400].includes(status))).toBe(true);
      for (const id of ids) await someone.post(`/users/${id}/restore`);
    }
  });

  it('403: a token needs org:admin as well for the group admin (SCOPE-19)', async () => {
    await admin.post('/userGroups/add-users', { userIds: [grace.userId], groupIds: [system['admin']] });
    const narrow = await admin.token({ scopes: ['usergroup:write'] });
    const { status, body } = await remove([grace.userId], [system['admin']], narrow);
    expect([status, body.message]).toEqual([403, 'Insufficient scope. Required: org:admin']);
    expect(await membersOf(system['admin'])).toEqual([admin.userId, grace.userId]);
  });
});
