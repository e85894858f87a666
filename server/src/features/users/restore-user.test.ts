import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, type Json, organization, TestApp, type TestResponse } from '../../../test/support/test-app.ts';
import { setPassword } from '../passwords/public.ts';

const unknown = 'f'.repeat(24);

describe('POST /users/:id/restore', () => {
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

  async function deletedUser(): Promise<Json> {
    count += 1;
    const { body } = await admin.post('/users', { fullName: 'New Comer', email: `new-${count}@example.com` });
    await admin.delete(`/users/${body._id}`);
    return body;
  }
  const restore = (id: string, client = admin) => client.post(`/users/${id}/restore`);
  const code = ({ status, body }: TestResponse) => [status, body.error?.code];

  it('200: the same person again, never having logged in (USER-39)', async () => {
    const { body: before } = await admin.post('/users', { fullName: 'X', email: 'whole@example.com' });
    const address = { city: 'London' };
    const given = { email: before.email, firstName: 'A', mobile: '1234567890', designation: 'D', address };
    const { body: full } = await admin.put(`/users/${before._id}`, { ...given, hasLoggedIn: true });
    await admin.delete(`/users/${before._id}`);
    app.clock.advance(60_000);
    const { status, body } = await restore(before._id.toUpperCase());
    const updatedAt = new Date(app.clock.now()).toISOString();
    expect([status, body]).toEqual([200, { ...full, hasLoggedIn: false, isDeleted: false, updatedAt }]);
    expect(body).not.toHaveProperty('deletedBy');
    expect((await member.get(`/users/${before._id}`)).body).toEqual({ ...body, emailVerifiedAt: undefined });
  });

  it('200: in everyone again and in no other group, told of as added, audited (USER-40, EVENT-5, STORE-1)', async () => {
    const { _id, orgId, email } = await deletedUser();
    const token = await admin.token({ scopes: ['user:invite'] });
    const [events, audit] = [(await app.events()).length, (await app.audit()).length];
    expect((await restore(_id, token)).status).toBe(200);
    const { body: users } = await admin.get('/users/fetch/with-groups');
    const groups = users.find((user: Json) => user._id === _id).groups;
    expect(groups).toEqual([{ name: 'everyone', type: 'everyone' }]);
    const told = (await app.events()).slice(events);
    const payload = { orgId, userId: _id, email, fullName: 'New Comer', syncAction: 'immediate' };
    expect(told.map((event) => [event.event_type, event.payload])).toEqual([['userAdded', payload]]);
    const actor = { actor_user_id: admin.userId, actor_token_id: token.tokenId, org_id: orgId };
    const rows = (await app.audit()).slice(audit);
    const details = { revokedTokens: 0 };
    expect(rows).toMatchObject([{ action: 'user.restored', subject_id: _id, details, ...actor }]);
  });

  it('401: every session, refresh token, token and password of before stays dead (AUTH-40, K7)', async () => {
    const user = await app.member(admin, 'returning@example.com');
    const { body: pair } = await app.signInTokens('returning@example.com');
    const parent = await user.token({ expiryDays: 'never', name: 'parent' });
    const child = await parent.token({ name: 'child' });
    const revoked = await user.token({ name: 'revoked before' });
    await user.delete(`/personal-access-tokens/${revoked.tokenId}?reason=mine`);
    const bystander = await member.token();
    await admin.delete(`/users/${user.userId}`);
    expect((await restore(user.userId)).status).toBe(200);

    const sessions = [user, app.with(pair.accessToken)];
    for (const session of sessions) expect(code(await session.get('/org'))).toEqual([401, 'SESSION_EXPIRED']);
    const refreshed = await app.with(pair.refreshToken).post('/userAccount/refresh/token');
    expect(code(refreshed)).toEqual([401, 'SESSION_EXPIRED']);
    for (const token of [parent, child]) expect(code(await token.get('/org'))).toEqual([401, 'TOKEN_REVOKED']);
    expect((await app.signInTokens('returning@example.com')).status).toBe(401);
    for (const client of [bystander, member, admin]) expect((await client.get('/org')).status).toBe(200);

    const list = (status: string) => admin.get(`/personal-access-tokens/admin?status=${status}&userId=${user.userId}`);
    const { body } = await list('revoked');
    const byRestore = { revokedBy: admin.userId, revokeReason: 'Owner was deleted', ownerDeleted: false };
    expect(body.data).toMatchObject([
      { name: 'revoked before', revokedBy: user.userId, revokeReason: 'mine' },
      { name: 'child', ...byRestore },
      { name: 'parent', ...byRestore },
    ]);
    expect((await list('active')).body.data).toEqual([]);
  });

  it('200: a row for each token that this revoked, by anyone who restored, beside the one of the restoring (AUDIT-1, STORE-1)', async () => {
    const user = await app.member(admin, 'audited@example.com');
    const parent = await user.token({ expiryDays: 'never' });
    const child = await parent.token({ expiryDays: 'never' });
    const revoked = await user.token();
    await user.delete(`/personal-access-tokens/${revoked.tokenId}`);
    const expired = await user.token({ expiryDays: 30 });
    await admin.delete(`/users/${user.userId}`);
    app.clock.advance(30 * 86_400_000);
    admin = await app.signIn('ada@example.com');
    member = await app.signIn('grace@example.com');
    const token = await admin.token({ scopes: ['user:invite'] });
    const before = (await app.audit()).length;
    expect((await restore(user.userId, token)).status).toBe(200);

    const rows = (await app.audit()).slice(before);
    const by = { actor_user_id: admin.userId, actor_token_id: token.tokenId, org_id: expect.any(String) };
    const { request_id, network } = rows.at(-1);
    const ofToken = (subject_id: string) => ({
      action: 'token.revoked',
      subject_id,
      request_id,
      network,
      ...by,
      details: { reason: 'Owner was deleted' },
    });
    const subjects = rows.slice(0, -1).map(({ subject_id }) => subject_id);
    expect(subjects).toHaveLength(2);
    expect(new Set(subjects)).toEqual(new Set([parent.tokenId, child.tokenId]));
    expect((await expired.get('/org')).body.error.code).toBe('TOKEN_EXPIRED');
    expect(rows).toMatchObject([
      ...subjects.map(ofToken),
      { action: 'user.restored', subject_id: user.userId, details: { revokedTokens: 2 }, ...by },
    ]);
  });

  it('200: from then on like anyone else: signs in with a new password, mints, is deleted and restored again', async () => {
    const { _id, email } = await deletedUser();
    await restore(_id);
    const { passwords, db, clock } = app.services;
    const passwordHash = await passwords.hash('Other-Horse-8');
    await db.transaction((tx) => setPassword(tx, { userId: _id, passwordHash, nowMs: clock.now() }));
    const { status, body } = await app.signInTokens(email, 'Other-Horse-8');
    expect(status).toBe(200);
    expect((await admin.get(`/users/${_id}`)).body.hasLoggedIn).toBe(true);
    const again = app.with(body.accessToken);
    const token = await again.token();
    expect((await token.get('/org')).status).toBe(200);
    expect((await admin.delete(`/users/${_id}`)).status).toBe(200);
    expect((await restore(_id)).status).toBe(200);
    for (const client of [again, token]) expect((await client.get('/org')).status).toBe(401);
    const told = (await app.events()).filter(({ payload }) => payload.userId === _id);
    const added = ['userAdded', 'userDeleted'];
    expect(told.map((event) => event.event_type)).toEqual([...added, ...added, 'userAdded']);
  });

  it('409: an active user, a second time too, and an administrator; 404: no one; 400: no id (USER-40)', async () => {
    const { _id } = await deletedUser();
    await restore(_id);
    const [events, audit] = [await app.events(), await app.audit()];
    for (const id of [_id, member.userId, admin.userId]) expect(code(await restore(id))).toEqual([409, 'CONFLICT']);
    for (const id of [unknown, (await admin.get('/org')).body._id]) {
      expect(code(await restore(id))).toEqual([404, 'NOT_FOUND']);
    }
    for (const id of ['x', '%00', `${unknown}0`]) expect(code(await restore(id))).toEqual([400, 'VALIDATION_ERROR']);
    expect([await app.events(), await app.audit()]).toEqual([events, audit]);
  });

  it('409: restoring an active user revokes nothing of that user (USER-40)', async () => {
    const token = await member.token();
    expect((await restore(member.userId)).status).toBe(409);
    for (const client of [member, token]) expect((await client.get('/org')).status).toBe(200);
  });

  it('403: a member, whatever the id, and a token without user:invite (ERR-16, SCOPE-13)', async () => {
    const { _id } = await deletedUser();
    for (const client of [member, await member.token()]) {
      for (const id of [_id, member.userId, unknown, 'x']) {
        expect(code(await restore(id, client))).toEqual([403, 'ADMIN_REQUIRED']);
      }
    }
    const token = await admin.token({ scopes: ['user:read', 'user:write', 'user:delete', 'org:admin'] });
    expect((await restore(_id, token)).body.message).toBe('Insufficient scope. Required: user:invite');
    expect((await app.service().get(`/users/internal/${_id}`)).body.isDeleted).toBe(true);
  });

  it('200: in an organization with an individual account too (USER-39)', async () => {
    const single = await TestApp.start();
    const { registeredName: _, ...rest } = organization;
    expect((await single.anonymous.post('/org', { ...rest, accountType: 'individual' })).status).toBe(200);
    const owner = await single.signIn(organization.contactEmail);
    const { body } = await owner.post('/users', { fullName: 'X', email: 'x@example.com' });
    await owner.delete(`/users/${body._id}`);
    expect((await restore(body._id, owner)).status).toBe(200);
    await single.close();
  });
});
