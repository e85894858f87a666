import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';

describe('GET /userGroups/:groupId', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
  });
  afterAll(() => app.close());

  it('200: any member sees a group with the ids of its members (GROUP-9)', async () => {
    const { groups } = (await member.get('/userGroups')).body;
    const everyone = groups.find(({ type }: Json) => type === 'everyone');
    const { userCount, ...rest } = everyone;
    const { status, body } = await member.get(`/userGroups/${everyone._id.toUpperCase()}`);
    expect([status, body]).toEqual([200, { ...rest, users: [admin.userId, member.userId] }]);
    expect(userCount).toBe(2);
  });

  it('404: what is no group; 400: what is no id', async () => {
    for (const id of ['a'.repeat(24), admin.userId]) expect((await member.get(`/userGroups/${id}`)).status).toBe(404);
    expect((await member.get('/userGroups/none')).status).toBe(400);
  });

  it('403: a token without usergroup:read (SCOPE-18)', async () => {
    const { groups } = (await member.get('/userGroups')).body;
    const token = await member.token({ scopes: ['usergroup:write', 'user:read'] });
    const { status, body } = await token.get(`/userGroups/${groups[0]._id}`);
    expect([status, body.message]).toEqual([403, 'Insufficient scope. Required: usergroup:read']);
  });
});
