import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Client, TestApp } from '../../../test/support/test-app.ts';

let app: TestApp;
let admin: Client;

beforeAll(async () => {
  app = await TestApp.start();
  admin = await app.setUp();
});
afterAll(() => app.close());

it('200: GET /userGroups/stats/list tells any member how many are in each group (GROUP-7)', async () => {
  const member = await app.member(admin, 'grace@example.com');
  const gone = await app.member(admin, 'gone@example.com');
  await app.deleteUser(gone.userId);
  await admin.post('/userGroups', { name: 'Empty', type: 'custom' });
  const { status, body } = await member.get('/userGroups/stats/list');
  expect([status, body]).toEqual([
    200,
    [
      { _id: 'admin', count: 1, totalUsers: 1, avgUsers: 1 },
      { _id: 'everyone', count: 1, totalUsers: 2, avgUsers: 2 },
      { _id: 'standard', count: 1, totalUsers: 0, avgUsers: 0 },
      { _id: 'Empty', count: 1, totalUsers: 0, avgUsers: 0 },
    ],
  ]);
});
