import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { claimsOf } from '../support/sign-in.ts';
import { type Client, type Json, TestApp } from '../support/test-app.ts';

describe('an unverified address, wherever addresses are given out', () => {
  const [own, claimed] = ['mallory@example.com', 'ceo@example.com'];
  let app: TestApp;
  let admin: Client;
  let member: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, own);
    const { status, text } = await member.patch(`/users/${member.userId}/email`, { email: claimed });
    if (status !== 200) throw new Error(text);
  });
  afterAll(() => app.close());

  it('is neither a claim of a session nor in the answer of a refresh (ADDRESS-15)', async () => {
    const { body } = await app.signInTokens(claimed);
    expect(claimsOf(body.accessToken).email).toBe(own);
    const refreshed = await app.with(body.refreshToken).post('/userAccount/refresh/token');
    expect([refreshed.status, refreshed.body.user.email, claimsOf(refreshed.body.accessToken).email]).toEqual([
      200,
      own,
      own,
    ]);
  });

  it('is told to no service, which finds the user by the verified one alone (ADDRESS-15)', async () => {
    const service = app.service(['USER_LOOKUP']);
    const exists = (email: string) => service.get(`/users/email/exists?email=${encodeURIComponent(email)}`);
    expect((await exists(claimed)).body).toEqual([]);
    expect((await exists(own)).body).toMatchObject([{ _id: member.userId, email: own, isDeleted: false }]);
    expect((await service.get(`/users/internal/${member.userId}`)).body.email).toBe(own);
  });

  it('is shown to other members as what it is, or not at all (ADDRESS-15)', async () => {
    const other = await app.member(admin, 'other@example.com');
    const { userId } = member;
    expect((await other.get(`/users/${userId}`)).body).toMatchObject({ email: claimed, emailVerified: false });
    expect((await other.get('/users')).body.find(({ _id }: Json) => _id === userId).emailVerified).toBe(false);
    expect((await other.get(`/users/${other.userId}`)).body).not.toHaveProperty('emailVerified');
    const everyone = (await other.get('/userGroups?search=everyone')).body.groups[0]._id;
    const responses = [
      (await other.post('/users/by-ids', { userIds: [userId] })).text,
      (await other.get('/users/fetch/with-groups')).text,
      (await other.get(`/userGroups/${everyone}/users`)).text,
      (await other.get('/users/graph/list')).text,
    ];
    for (const text of responses)
      expect([text, text.includes(own), text.includes(claimed)]).toEqual([text, true, false]);
  });

  it('is no longer marked once it is verified (ADDRESS-15, EVENT-6)', async () => {
    const last = async () => (await app.events()).findLast(({ payload }) => payload.userId === member.userId)?.payload;
    expect(await last()).toMatchObject({ email: claimed, emailVerified: false });
    await admin.post('/userAccount/email/confirm', { userId: member.userId });
    expect(await last()).toMatchObject({ email: claimed });
    expect(await last()).not.toHaveProperty('emailVerified');
    expect(claimsOf((await app.signInTokens(claimed)).body.accessToken).email).toBe(claimed);
  });
});
