import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';

describe('GET /userGroups/:groupId/users', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;
  let everyone: string;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com', 'Grace 100%');
    for (const name of ['Zoë', 'émile', 'Bob']) {
      const email = `${name.normalize('NFD').replace(/\P{ASCII}/gu, '')}@example.com`;
      await admin.post('/users', { fullName: name, email });
    }
    const { groups } = (await member.get('/userGroups')).body;
    everyone = groups.find(({ type }: Json) => type === 'everyone')._id;
  });
  afterAll(() => app.close());

  const names = async (query = '') => {
    const { body } = await member.get(`/userGroups/${everyone}/users${query}`);
    return body.users.map(({ fullName }: Json) => fullName);
  };

  it('200: any member sees the members by name, each without picture, and where the page is (GROUP-10, GROUP-6)', async () => {
    const { status, body } = await member.get(`/userGroups/${everyone}/users?limit=2`);
    expect([status, body.pagination]).toEqual([
      200,
      { page: 1, limit: 2, totalCount: 5, totalPages: 3, hasNextPage: true, hasPrevPage: false },
    ]);
    expect(body.users[0]).toEqual({
      _id: admin.userId,
      fullName: 'Ada Lovelace',
      email: 'ada@example.com',
      profilePicture: null,
    });
    expect(await names()).toEqual(['Ada Lovelace', 'Bob', 'Grace 100%', 'Zoë', 'émile']);
    expect(await names('?limit=2&page=3')).toEqual(['émile']);
  });

  it('200: search is taken literally, in name and address, in any case (GROUP-10)', async () => {
    expect(await names('?search=ZOË')).toEqual(['Zoë']);
    expect(await names('?search=%25')).toEqual(['Grace 100%']);
    expect(await names('?search=BOB@EXAMPLE')).toEqual(['Bob']);
    expect(await names('?search=nobody')).toEqual([]);
  });

  it('200: a deleted user is in no group', async () => {
    const gone = await app.member(admin, 'gone@example.com', 'Gone');
    expect(await names('?search=gone')).toEqual(['Gone']);
    await app.deleteUser(gone.userId);
    expect(await names('?search=gone')).toEqual([]);
  });

  it('404: no such group; 400: a page that cannot be', async () => {
    expect((await member.get(`/userGroups/${'a'.repeat(24)}/users`)).status).toBe(404);
    expect((await member.get(`/userGroups/${everyone}/users?limit=0`)).status).toBe(400);
  });
});
