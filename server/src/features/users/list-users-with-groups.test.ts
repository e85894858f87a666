import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addManyUsers } from '../../../test/support/many-users.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';

describe('GET /users/fetch/with-groups', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
  });
  afterAll(() => app.close());

  const list = async () => (await member.get('/users/fetch/with-groups')).body;
  const namesOf = ({ groups }: Json): string[] => groups.map(({ name }: Json) => name).sort();

  async function addGroup(name: string, userIds: readonly string[]): Promise<string> {
    const { db, newId, clock } = app.services;
    const [id, nowMs] = [newId(), clock.now()];
    await db.transaction(async (tx) => {
      const { org_id } = await tx.selectFrom('users').select('org_id').limit(1).executeTakeFirstOrThrow();
      const keys = { id, org_id, slug: `usergroup-of-${name}`, name, name_key: name, type: 'custom' } as const;
      const row = { ...keys, is_system: 0, is_deleted: 0, created_at: nowMs, updated_at: nowMs } as const;
      await tx.insertInto('user_groups').values(row).execute();
      for (const user_id of userIds) await tx.insertInto('group_members').values({ group_id: id, user_id }).execute();
    });
    return id;
  }

  it('200: everyone in order of creation, each with the groups, for any member (USER-19)', async () => {
    const { status, body } = await member.get('/users/fetch/with-groups');
    const orgId = (await admin.get(`/users/${admin.userId}`)).body.orgId;
    const entry = (userId: string, fullName: string, email: string) => {
      return { _id: userId, userId, orgId, fullName, email, hasLoggedIn: true, groups: expect.any(Array) };
    };
    expect([status, body]).toEqual([
      200,
      [
        entry(admin.userId, 'Ada Lovelace', 'ada@example.com'),
        entry(member.userId, 'Grace Hopper', 'grace@example.com'),
      ],
    ]);
    expect(body.map(namesOf)).toEqual([['admin', 'everyone'], ['everyone']]);
    expect(body[0].groups).toContainEqual({ name: 'admin', type: 'admin' });
    expect(body).toEqual((await admin.get('/users/fetch/with-groups')).body);
  });

  it('200: who has not signed in yet shows so', async () => {
    const { body } = await admin.post('/users', { fullName: 'New', email: 'new@example.com' });
    expect((await list()).at(-1)).toMatchObject({ _id: body._id, hasLoggedIn: false });
    await app.deleteUser(body._id);
  });

  it('200: without deleted groups and deleted users (USER-19)', async () => {
    const [gone, kept] = [await addGroup('gone', [member.userId]), await addGroup('kept', [member.userId])];
    expect(namesOf((await list())[1])).toEqual(['everyone', 'gone', 'kept']);
    const { db } = app.services;
    await db.transaction((tx) => tx.updateTable('user_groups').set({ is_deleted: 1 }).where('id', '=', gone).execute());
    expect(namesOf((await list())[1])).toEqual(['everyone', 'kept']);
    await db.transaction((tx) => tx.deleteFrom('group_members').where('group_id', '=', kept).execute());
    const { body } = await admin.post('/users', { fullName: 'Leaving', email: 'leaving@example.com' });
    await app.deleteUser(body._id);
    expect((await list()).map(({ email }: Json) => email)).toEqual(['ada@example.com', 'grace@example.com']);
  });

  it('200: groups in order of creation, whenever someone joined them (USER-19)', async () => {
    const [zeta, alpha, mid] = [await addGroup('zeta', []), await addGroup('alpha', []), await addGroup('mid', [])];
    const { db } = app.services;
    for (const group_id of [mid, alpha, zeta]) {
      await db.transaction((tx) =>
        tx.insertInto('group_members').values({ group_id, user_id: member.userId }).execute(),
      );
    }
    const names = (await list())[1].groups.map(({ name }: Json) => name);
    expect(names).toEqual(['everyone', 'zeta', 'alpha', 'mid']);
    for (const table of ['group_members', 'user_groups'] as const) {
      const column = table === 'user_groups' ? 'id' : 'group_id';
      await db.transaction((tx) => tx.deleteFrom(table).where(column, 'in', [zeta, alpha, mid]).execute());
    }
  });

  it('200: memberships that are spread over batches stay with their user (USER-19)', async () => {
    const ids = await addManyUsers(app, 600);
    // With three groups each and one more for some, users lie across every boundary.
    await addGroup('one', ids);
    await addGroup('two', ids);
    const odd = ids.filter((_, place) => place % 3 === 1);
    await addGroup('odd', odd);
    const body = await list();
    expect(body.map(({ _id }: Json) => _id)).toEqual([admin.userId, member.userId, ...ids]);
    for (const user of body.slice(2)) {
      const expected = odd.includes(user._id) ? ['everyone', 'odd', 'one', 'two'] : ['everyone', 'one', 'two'];
      expect(namesOf(user)).toEqual(expected);
    }
  });

  it('200: one user with more groups than a batch has rows (USER-19)', async () => {
    for (let count = 0; count < 450; count += 1) await addGroup(`many-${count}`, [member.userId]);
    const body = await list();
    expect(body[1].groups).toHaveLength(451);
    expect([namesOf(body[0]), body.length]).toEqual([['admin', 'everyone'], 602]);
  });

  it('401 without a credential, 403 without the scope (ERR-14, ERR-15)', async () => {
    expect((await app.anonymous.get('/users/fetch/with-groups')).status).toBe(401);
    const token = await admin.token({ scopes: ['usergroup:read', 'org:read'] });
    const { status, body } = await token.get('/users/fetch/with-groups');
    expect([status, body.message]).toEqual([403, 'Insufficient scope. Required: user:read']);
    expect((await app.service().get('/users/fetch/with-groups')).status).toBe(401);
  });
});
