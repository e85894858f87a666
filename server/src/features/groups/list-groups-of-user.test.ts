import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';

describe('GET /userGroups/users/:userId', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
  });
  afterAll(() => app.close());

  it('200: any member sees the groups that someone is in (GROUP-8)', async () => {
    const { status, body } = await member.get(`/userGroups/users/${admin.userId.toUpperCase()}`);
    const id = expect.stringMatching(/^[a-f0-9]{24}$/);
    const expected = [
      { _id: id, name: 'admin', type: 'admin' },
      { _id: id, name: 'everyone', type: 'everyone' },
    ];
    expect([status, body]).toEqual([200, expected]);
    const own = (await member.get(`/userGroups/users/${member.userId}`)).body;
    expect(own.map(({ name }: Json) => name)).toEqual(['everyone']);
  });

  it('404: no one, and someone who is deleted', async () => {
    const gone = await app.member(admin, 'gone@example.com');
    await app.deleteUser(gone.userId);
    for (const id of [gone.userId, 'a'.repeat(24)]) {
      expect((await member.get(`/userGroups/users/${id}`)).status).toBe(404);
    }
  });
});
