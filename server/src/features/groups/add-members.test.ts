import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';

describe('POST /userGroups/add-users', () => {
  let app: TestApp;
  let admin: Client;
  let grace: Client;
  let alan: Client;
  let system: Record<string, string>;
  let groupId: string;
  let count = 0;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    grace = await app.member(admin, 'grace@example.com');
    alan = await app.member(admin, 'alan@example.com');
    const { groups } = (await admin.get('/userGroups')).body;
    system = Object.fromEntries(groups.map(({ type, _id }: Json) => [type, _id]));
  });
  beforeEach(async () => {
    count += 1;
    groupId = (await admin.post('/userGroups', { name: `Group ${count}`, type: 'custom' })).body._id;
  });
  afterAll(() => app.close());

  const add = (userIds: unknown, groupIds: unknown, client: Client = admin) =>
    client.post('/userGroups/add-users', { userIds, groupIds });
  const membersOf = async (id: string | undefined) => (await admin.get(`/userGroups/${id}`)).body.users;

  it('200: each of the users is in each of the groups; who is in one stays in it (GROUP-14)', async () => {
    await add([grace.userId], [groupId]);
    const { status, body } = await add(
      [grace.userId.toUpperCase(), alan.userId, alan.userId],
      [groupId, system['standard'], groupId],
    );
    expect([status, body]).toEqual([200, { message: 'Users added to groups successfully' }]);
    for (const id of [groupId, system['standard']]) {
      expect(await membersOf(id)).toEqual([grace.userId, alan.userId]);
    }
    const rows = (await app.audit()).filter(({ action }) => action === 'group.members-added').slice(-2);
    expect(new Set(rows.map(({ subject_id }) => subject_id))).toEqual(new Set([groupId, system['standard']]));
    expect(rows[0]?.details).toEqual({ userIds: [grace.userId, alan.userId] });
  });

  it('400: ids that do not exist are named, and no one is added (GROUP-15)', async () => {
    const gone = await app.member(admin, 'gone@example.com');
    await app.deleteUser(gone.userId);
    const passing = (await admin.post('/userGroups', { name: 'Passing', type: 'custom' })).body._id;
    await admin.delete(`/userGroups/${passing}`);
    const anonymous = 'a'.repeat(24);
    const { status, body } = await add([grace.userId, anonymous, gone.userId], [groupId, passing]);
    expect([status, body.error.code]).toEqual([400, 'VALIDATION_ERROR']);
    expect(body.error.details).toEqual([
      { field: 'body.userIds.1', message: `${anonymous} does not exist` },
      { field: 'body.userIds.2', message: `${gone.userId} does not exist` },
      { field: 'body.groupIds.1', message: `${passing} does not exist` },
    ]);
    expect(await membersOf(groupId)).toEqual([]);
  });

  it.each([
    ['no userIds', undefined, ['a'.repeat(24)]],
    ['no groupIds', ['a'.repeat(24)], undefined],
    ['empty userIds', [], ['a'.repeat(24)]],
    ['empty groupIds', ['a'.repeat(24)], []],
    ['an id of 23 digits', ['a'.repeat(23)], ['a'.repeat(24)]],
    ['a text for a list', 'a'.repeat(24), ['a'.repeat(24)]],
    [
      'more than 100 groups',
      ['a'.repeat(24)],
      Array.from({ length: 101 }, (_, place) => place.toString(16).padStart(24, '1')),
    ],
    [
      'more than 10,000 memberships',
      Array.from({ length: 101 }, (_, place) => place.toString(16).padStart(24, '0')),
      Array.from({ length: 100 }, (_, place) => place.toString(16).padStart(24, '1')),
    ],
  ])('400: %s', async (_, userIds, groupIds) => {
    expect((await add(userIds, groupIds)).status).toBe(400);
  });

  it('someone added to admin administrates from the next call on', async () => {
    expect((await alan.get('/personal-access-tokens/admin')).status).toBe(400);
    await add([alan.userId], [system['admin']]);
    expect((await alan.get('/personal-access-tokens/admin')).status).toBe(200);
    await admin.post('/userGroups/remove-users', { userIds: [alan.userId], groupIds: [system['admin']] });
    expect((await alan.get('/personal-access-tokens/admin')).status).toBe(400);
  });

  it('403: no token makes an administrator, and it learns nothing more (LEAVER-1)', async () => {
    for (const token of [await admin.token({ scopes: ['usergroup:write'] }), await admin.token()]) {
      expect((await add([grace.userId], [groupId], token)).status).toBe(200);
      for (const userIds of [[grace.userId], ['b'.repeat(24)]]) {
        const { status, body } = await add(userIds, [groupId, system['admin']], token);
        expect([status, body.error.code]).toEqual([403, 'FORBIDDEN']);
        expect(body.message).toMatch(/in a session, not with a personal access token/);
      }
    }
    expect(await membersOf(system['admin'])).toEqual([admin.userId]);
  });
});
