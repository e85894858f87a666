import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { onePixel } from '../../../test/support/made-pictures.ts';
import { type Client, type Json, TestApp, type TestResponse } from '../../../test/support/test-app.ts';

const unknown = 'f'.repeat(24);

describe('DELETE /users/:id', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;
  let count = 0;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
  });
  afterAll(() => app.close());

  /** Creates a user who is signed in. */
  async function someUser(): Promise<Client & { email: string }> {
    count += 1;
    const email = `some-${count}@example.com`;
    return Object.assign(await app.member(admin, email), { email });
  }
  /** Creates a user who has never signed in. */
  async function newUser(): Promise<Json> {
    count += 1;
    return (await admin.post('/users', { fullName: 'New Comer', email: `new-${count}@example.com` })).body;
  }
  const remove = (id: string, client = admin) => client.delete(`/users/${id}`);
  const code = ({ status, body }: TestResponse) => [status, body.error?.code];
  const internal = async (id: string) => (await app.service().get(`/users/internal/${id}`)).body;
  const rowOf = (id: string) =>
    app.services.db.read.selectFrom('users').where('id', '=', id).selectAll().executeTakeFirstOrThrow();
  const groupsOf = (userId: string) =>
    app.services.db.read.selectFrom('group_members').where('user_id', '=', userId).selectAll().execute();

  it('200: the user is kept as deleted, by whom and when, and has not logged in (USER-34)', async () => {
    const { userId, email } = await someUser();
    const before = await rowOf(userId);
    expect(before.signed_in_at).toBeTypeOf('number');
    app.clock.advance(60_000);
    const { status, body } = await remove(userId.toUpperCase());
    expect([status, body]).toEqual([200, { message: 'User deleted successfully' }]);
    expect(await rowOf(userId)).toEqual({
      ...before,
      is_deleted: 1,
      has_logged_in: 0,
      // Nothing earlier counts for a restored user: the first sign-in is still to come.
      signed_in_at: null,
      deleted_by: admin.userId,
      updated_at: app.clock.now(),
    });
    expect(await internal(userId)).toMatchObject({ _id: userId, email, isDeleted: true, hasLoggedIn: false });
  });

  it('200: no one finds the user any more, and the record is 404 (USER-1, USER-2, USER-21)', async () => {
    const { _id, email } = await newUser();
    await remove(_id);
    const search = encodeURIComponent(email);
    const lists = ['/users', `/users?search=${search}`, '/users?limit=100', '/users/fetch/with-groups'];
    for (const path of lists) expect((await member.get(path)).text).not.toContain(_id);
    expect((await member.post('/users/by-ids', { userIds: [_id] })).body).toEqual([]);
    expect((await member.get(`/users/${_id}`)).status).toBe(404);
    expect((await admin.get(`/users/${_id}/adminCheck`)).status).toBe(404);
  });

  it('200: out of every group, and the others stay in theirs (USER-35, STORE-7)', async () => {
    const { _id } = await newUser();
    const others = await groupsOf(member.userId);
    const { id: standard } = await app.services.db.read
      .selectFrom('user_groups')
      .where('type', '=', 'standard')
      .select('id')
      .executeTakeFirstOrThrow();
    await app.services.db.transaction((tx) =>
      tx.insertInto('group_members').values({ group_id: standard, user_id: _id }).execute(),
    );
    expect(await groupsOf(_id)).toHaveLength(2);
    await remove(_id);
    expect(await groupsOf(_id)).toEqual([]);
    expect(await groupsOf(member.userId)).toEqual(others);
  });

  it('200: every session ends at once, by access and by refresh token, and the password is gone (USER-35, AUTH-24)', async () => {
    const first = await someUser();
    const { body: second } = await app.signInTokens(first.email);
    expect((await remove(first.userId)).status).toBe(200);
    const { credential } = first;
    const dead = [
      ...(await Promise.all([credential, second.accessToken].map((token) => app.with(token).get('/org')))),
      await app.with(second.refreshToken).post('/userAccount/refresh/token'),
    ];
    expect(dead.map(code)).toEqual(dead.map(() => [401, 'TOKEN_INVALID']));
    expect((await app.signInTokens(first.email)).body).toMatchObject({ message: 'The credentials are not valid' });
    const hashes = app.services.db.read.selectFrom('password_credentials').where('user_id', '=', first.userId);
    expect(await hashes.selectAll().execute()).toEqual([]);
    const sessions = app.services.db.read.selectFrom('sessions').where('user_id', '=', first.userId);
    const reasons = (await sessions.selectAll().execute()).map(({ end_reason }) => end_reason);
    expect(reasons).toEqual(['owner-deleted', 'owner-deleted']);
  });

  it('200: the invitation link works no longer, not even once the person is restored (LINK-3, USER-43)', async () => {
    const { _id } = await newUser();
    const { link } = (await admin.post(`/users/${_id}/invite-link`)).body;
    const use = () =>
      app.with(link.split('#token=')[1]).post('/userAccount/password/reset/token', { password: 'Brand-New-Horse-8' });
    await remove(_id);
    expect(code(await use())).toEqual([401, 'TOKEN_INVALID']);
    expect((await admin.post(`/users/${_id}/restore`)).status).toBe(200);
    expect(code(await use())).toEqual([410, 'GONE']);
    const hashes = app.services.db.read.selectFrom('password_credentials').where('user_id', '=', _id);
    expect(await hashes.selectAll().execute()).toEqual([]);
  });

  it('200: tokens are refused at once and stay in the administrator’s list with ownerDeleted (USER-38, PAT-23)', async () => {
    const leaving = await someUser();
    const parent = await leaving.token({ expiryDays: 'never', name: 'parent' });
    const child = await parent.token({ name: 'child' });
    await remove(leaving.userId);
    for (const token of [parent, child]) expect(code(await token.get('/org'))).toEqual([401, 'TOKEN_INVALID']);
    const { body } = await admin.get(`/personal-access-tokens/admin?userId=${leaving.userId}`);
    const owner = { userId: leaving.userId, ownerEmail: leaving.email, ownerFullName: 'Grace Hopper' };
    expect(body.data).toMatchObject([
      { name: 'child', ...owner, ownerDeleted: true },
      { name: 'parent', ...owner, ownerDeleted: true },
    ]);
    for (const item of body.data) expect(item).not.toHaveProperty('revokedAt');
  });

  it('200: no one else’s sessions, tokens and password are touched (K8)', async () => {
    const staying = await someUser();
    const leaving = await someUser();
    const [token, mine] = [await staying.token(), await admin.token()];
    await remove(leaving.userId, mine);
    const responses = await Promise.all([staying, token, admin, mine].map((client) => client.get('/org')));
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect((await app.signInTokens(staying.email)).status).toBe(200);
  });

  it('200: the picture is kept', async () => {
    const leaving = await someUser();
    const { userId } = leaving;
    expect((await leaving.upload('/users/dp', new Uint8Array(onePixel()))).status).toBe(201);
    const picture = () =>
      app.services.db.read.selectFrom('pictures').where('owner_id', '=', userId).selectAll().executeTakeFirst();
    const before = await picture();
    await remove(userId);
    expect(await picture()).toEqual(before);
    expect(before?.content).toBeTypeOf('string');
  });

  it('200: publishes one userDeleted and writes one audit row (USER-35, EVENT-7, STORE-1)', async () => {
    const { _id, orgId, email } = await newUser();
    await admin.patch(`/users/${_id}/email`, { email: `last-${email}` });
    const [events, audit] = [(await app.events()).length, (await app.audit()).length];
    const token = await admin.token({ scopes: ['user:delete'] });
    expect((await remove(_id, token)).status).toBe(200);
    const told = (await app.events()).slice(events);
    expect(told).toMatchObject([{ event_type: 'userDeleted', org_id: orgId, occurred_at: app.clock.now() }]);
    expect(told[0].payload).toEqual({ orgId, userId: _id, email: `last-${email}` });
    const actor = { actor_user_id: admin.userId, actor_token_id: token.tokenId, org_id: orgId };
    const rows = (await app.audit()).slice(audit).filter(({ action }) => action !== 'token.created');
    expect(rows).toMatchObject([{ action: 'user.deleted', subject_id: _id, network: '127.0.0.1', ...actor }]);
  });

  it('409: a member of the admin group, oneself included; the text says what to do first (USER-36)', async () => {
    const second = await someUser();
    await app.promote(second.userId);
    const [events, audit] = [await app.events(), await app.audit()];
    for (const [id, client] of [
      [second.userId, admin],
      [admin.userId, second],
      [admin.userId, admin],
      [second.userId, second],
    ] as const) {
      const response = await remove(id, client);
      expect(code(response)).toEqual([409, 'CONFLICT']);
      expect(response.body.message).toMatch(/remove .* from the admin group first/);
    }
    expect([await app.events(), await app.audit()]).toEqual([events, audit]);
    expect((await second.get(`/users/${admin.userId}/adminCheck`)).status).toBe(200);
    await app.demote(second.userId);
    expect((await remove(second.userId)).status).toBe(200);
  });

  it('404: a second time, and of no one; 400: no id (USER-37, HTTP-19)', async () => {
    const { _id } = await newUser();
    await remove(_id);
    const events = await app.events();
    for (const id of [_id, unknown, (await admin.token()).tokenId]) {
      expect(code(await remove(id))).toEqual([404, 'NOT_FOUND']);
    }
    for (const id of ['x', '%00', `${unknown}0`]) expect(code(await remove(id))).toEqual([400, 'VALIDATION_ERROR']);
    expect(await app.events()).toEqual(events);
  });

  it('403: a member, also of oneself and whatever the id, and a token without user:delete (ERR-16, SCOPE-14)', async () => {
    for (const client of [member, await member.token()]) {
      for (const id of [member.userId, admin.userId, unknown, 'x']) {
        expect(code(await remove(id, client))).toEqual([403, 'ADMIN_REQUIRED']);
      }
    }
    const token = await admin.token({ scopes: ['user:read', 'user:write', 'user:invite', 'org:admin'] });
    expect((await remove(member.userId, token)).body.message).toBe('Insufficient scope. Required: user:delete');
    expect((await member.get('/org')).status).toBe(200);
  });
});
