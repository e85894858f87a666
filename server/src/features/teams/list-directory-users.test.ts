import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addManyUsers } from '../../../test/support/many-users.ts';
import { secondConnection } from '../../../test/support/second-connection.ts';
import { watchStatements } from '../../../test/support/statement-watch.ts';
import { planOf } from '../../../test/support/store-plans.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';

describe('GET /users/graph/list', () => {
  let app: TestApp;
  let admin: Client;
  let deletedId: string;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    [deletedId = ''] = await addManyUsers(app, 130);
    await app.deleteUser(deletedId);
  });
  afterAll(() => app.close());

  it('200: 25 at a time without a limit; deleted users are not there (TEAM-14, TEAM-26)', async () => {
    const seen: Json[] = [];
    for (let page = 1; page <= 6; page += 1) {
      const { body } = await admin.get(`/users/graph/list?page=${page}`);
      expect(body).toMatchObject({ status: 'success', message: 'Users fetched successfully' });
      const ends = { hasNext: page < 6, hasPrev: page > 1 };
      expect(body.pagination).toEqual({ page, limit: 25, total: 130, pages: 6, ...ends });
      seen.push(...body.users);
    }
    const ids = seen.map(({ userId }) => userId);
    expect(new Set(ids).size).toBe(130);
    expect(ids).not.toContain(deletedId);
    expect(seen.every(({ isActive, id, userId }) => isActive === true && id === userId)).toBe(true);
  });

  it('200: moments are milliseconds (TEAM-14)', async () => {
    const { _id } = (await admin.post('/users', { fullName: 'Ms Milli', email: 'milli@example.com' })).body;
    const createdAtTimestamp = app.clock.now();
    app.clock.advance(7);
    await admin.patch(`/users/${_id}/firstName`, { firstName: 'Milli' });
    const { users } = (await admin.get('/users/graph/list?search=milli@')).body;
    expect(users).toMatchObject([{ createdAtTimestamp, updatedAtTimestamp: app.clock.now() }]);
  });

  it('403: a token needs user:read, not team:read (SCOPE-1)', async () => {
    expect((await (await admin.token({ scopes: ['user:read'] })).get('/users/graph/list')).status).toBe(200);
    const { status, body } = await (await admin.token({ scopes: ['team:read'] })).get('/users/graph/list');
    expect([status, body.message]).toEqual([403, 'Insufficient scope. Required: user:read']);
  });

  it('takes two statements for a page, cut on an index', async () => {
    const seen: string[] = [];
    const stop = watchStatements((sql) => void seen.push(sql));
    await admin.get('/users/graph/list?page=2&limit=100');
    stop();
    const own = seen.filter((sql) => /from "users"/.test(sql) && /"is_deleted"/.test(sql));
    expect(own).toHaveLength(2);
    const store = secondConnection(app);
    const plans = own.map((sql) => planOf(store, sql));
    store.close();
    expect(plans.map(({ text }) => text).join('\n')).toContain('users_by_name');
    expect(plans.flatMap(({ scans }) => scans).filter((step) => !/USING|Index/.test(step))).toEqual([]);
  });
});
