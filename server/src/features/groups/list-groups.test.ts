import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { watchStatements } from '../../../test/support/statement-watch.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';

const names = ({ body }: Json) => body.groups.map(({ name }: Json) => name);

describe('GET /userGroups', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;
  const made: Json[] = [];

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
    for (const name of ['100% wool', 'Ärzte', 'under_score', 'Back\\slash']) {
      app.clock.advance(60_000);
      made.push((await admin.post('/userGroups', { name, type: 'custom' })).body);
    }
  });
  afterAll(() => app.close());

  it('200: any member sees all groups in order of creation, with counts and without members (GROUP-4, GROUP-6)', async () => {
    const response = await member.get('/userGroups');
    expect(response.status).toBe(200);
    expect(names(response)).toEqual([
      'admin',
      'everyone',
      'standard',
      '100% wool',
      'Ärzte',
      'under_score',
      'Back\\slash',
    ]);
    expect(response.body.groups.map(({ userCount }: Json) => userCount)).toEqual([1, 2, 0, 0, 0, 0, 0]);
    expect(response.body.groups.every((group: Json) => !('users' in group))).toBe(true);
    expect(response.body.pagination).toEqual({
      page: 1,
      limit: 25,
      totalCount: 7,
      totalPages: 1,
      hasNextPage: false,
      hasPrevPage: false,
    });
  });

  it('200: pages (GROUP-5, GROUP-6)', async () => {
    const second = await member.get('/userGroups?limit=3&page=2');
    expect(names(second)).toEqual(['100% wool', 'Ärzte', 'under_score']);
    expect(second.body.pagination).toMatchObject({ totalPages: 3, hasNextPage: true, hasPrevPage: true });
    expect(names(await member.get('/userGroups?limit=3&page=4'))).toEqual([]);
  });

  it.each([
    ['%25', ['100% wool']],
    ['_', ['under_score']],
    ['%5C', ['Back\\slash']],
    ['ÄRZTE', ['Ärzte']],
    ['a%CC%88rz', ['Ärzte']],
    ['.*', []],
    ['', ['admin', 'everyone', 'standard', '100% wool', 'Ärzte', 'under_score', 'Back\\slash']],
  ])('200: search=%s is taken literally, in any case (GROUP-5)', async (search, expected) => {
    expect(names(await member.get(`/userGroups?search=${search}`))).toEqual(expected);
  });

  it('200: createdAfter and createdBefore, the moments themselves included (GROUP-5)', async () => {
    const [first, second] = made;
    const between = `createdAfter=${first.createdAt}&createdBefore=${second.createdAt}`;
    expect(names(await member.get(`/userGroups?${between}`))).toEqual(['100% wool', 'Ärzte']);
    const offset = encodeURIComponent('2026-11-28T00:00:00+05:00');
    expect(names(await member.get(`/userGroups?createdAfter=${offset}`))).toHaveLength(7);
    expect(names(await member.get('/userGroups?createdBefore=2026-11-27'))).toEqual([]);
  });

  it.each([
    'page=0',
    'limit=101',
    'limit=x',
    'createdAfter=yesterday',
    'createdBefore=2026-13-01',
    'createdAfter=2026-11-27T20:00:00',
    'createdAfter=1&createdAfter=2',
    'search=%00',
  ])('400: %s (GROUP-5)', async (query) => {
    expect((await member.get(`/userGroups?${query}`)).status).toBe(400);
  });

  it('the same number of statements, whatever there is to list (STORE-14)', async () => {
    // The relays query the store periodically.
    await app.services.relays.close();
    const count = async () => {
      let statements = 0;
      const stop = watchStatements(() => {
        statements += 1;
      });
      await member.get('/userGroups?limit=100');
      stop();
      return statements;
    };
    await count();
    const few = await count();
    for (let number = 0; number < 60; number += 1) {
      await admin.post('/userGroups', { name: `Group ${number}`, type: 'custom' });
    }
    await count();
    expect(await count()).toBe(few);
  });
});
