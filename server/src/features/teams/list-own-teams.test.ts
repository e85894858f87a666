import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addManyUsers } from '../../../test/support/many-users.ts';
import { secondConnection } from '../../../test/support/second-connection.ts';
import { watchStatements } from '../../../test/support/statement-watch.ts';
import { planOf } from '../../../test/support/store-plans.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';
import { foldCase } from '../../text/plain-text.ts';

describe.each(['/users/teams/list', '/teams/user/teams'])('GET %s', (path) => {
  let app: TestApp;
  let admin: Client;
  let member: Client;
  let users: string[];

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
    users = await addManyUsers(app, 40);
    for (let number = 1; number <= 60; number += 1) {
      const members = users.slice(0, number % 7).map((userId) => ({ userId, role: 'READER' }));
      await member.post('/teams', { name: `Team ${number}`, members });
    }
  });
  afterAll(() => app.close());

  it('200: 25 at a time without a limit, newest first, each whole (TEAM-2, TEAM-15, TEAM-17, TEAM-26)', async () => {
    const seen: Json[] = [];
    for (const page of [1, 2, 3]) {
      const { body } = await member.get(`${path}?page=${page}`);
      expect(body).toMatchObject({ status: 'success', message: 'User teams fetched successfully' });
      const ends = { hasNext: page < 3, hasPrev: page > 1 };
      expect(body.pagination).toEqual({ page, limit: 25, total: 60, pages: 3, ...ends });
      seen.push(...body.teams);
    }
    expect(seen.map(({ name }) => name)).toEqual(Array.from({ length: 60 }, (_, place) => `Team ${60 - place}`));
    for (const team of seen) {
      expect(team.members).toHaveLength(1 + (Number(team.name.slice(5)) % 7));
      expect((await member.get(`/teams/${team.id}`)).body.team).toEqual(team);
    }
  });

  it('200: of a large team the first 50, and how many there are; the caller’s own rights all the same (TEAM-15)', async () => {
    const owner = await app.member(admin, `large-${path.length}@example.com`, 'Zzz');
    const members = users.map((userId) => ({ userId, role: 'READER' }));
    const more = (await addManyUsers(app, 30)).map((userId) => ({ userId, role: 'WRITER' }));
    const { team } = (await owner.post('/teams', { name: 'Large', members: [...members, ...more] })).body;
    const [listed] = (await owner.get(path)).body.teams;
    expect([listed.memberCount, listed.members.length, listed.canManageMembers]).toEqual([71, 50, true]);
    const names = listed.members.map(({ userName }: Json) => userName);
    expect(names.toSorted((a: string, b: string) => (foldCase(a) < foldCase(b) ? -1 : 1))).toEqual(names);
    expect((await owner.get(`/teams/${team.id}`)).body.team.members).toHaveLength(71);
  });

  it('200: an administrator sees the own teams here, not all (TEAM-2, TEAM-20)', async () => {
    expect((await admin.get(path)).body).toMatchObject({ teams: [], pagination: { total: 0, pages: 0 } });
  });

  it('200: only those that a user made, and since or until a moment, in ISO or milliseconds (CRED-3)', async () => {
    const maker = await app.member(admin, `maker-${path.length}@example.com`, 'Maker');
    const members = [{ userId: maker.userId, role: 'READER' }];
    const madeAt: number[] = [];
    for (const [by, name] of [
      [maker, 'Own 1'],
      [member, 'Theirs'],
      [maker, 'Own 2'],
    ] as const) {
      app.clock.advance(60_000);
      madeAt.push(app.clock.now());
      await by.post('/teams', { name, ...(by === maker ? {} : { members }) });
    }
    const [first = 0, second = 0, third = 0] = madeAt;
    const iso = (ms: number) => encodeURIComponent(new Date(ms).toISOString());
    const namesFor = async (query: string) => {
      const { body } = await maker.get(`${path}?${query}`);
      expect(body.pagination.total).toBe(body.teams.length);
      return body.teams.map(({ name }: Json) => name);
    };
    expect(await namesFor(`created_by=${maker.userId}`)).toEqual(['Own 2', 'Own 1']);
    expect(await namesFor(`created_by=${member.userId.toUpperCase()}`)).toEqual(['Theirs']);
    expect(await namesFor(`created_by=${admin.userId}`)).toEqual([]);
    for (const form of [String, iso]) {
      expect(await namesFor(`created_after=${form(second)}`)).toEqual(['Own 2', 'Theirs']);
      expect(await namesFor(`created_after=${form(second + 1)}`)).toEqual(['Own 2']);
      expect(await namesFor(`created_before=${form(second)}`)).toEqual(['Theirs', 'Own 1']);
      expect(await namesFor(`created_before=${form(first - 1)}`)).toEqual([]);
      expect(await namesFor(`created_after=${form(first)}&created_before=${form(third)}&search=own`)).toHaveLength(2);
    }
    for (const wrong of [
      'created_after=yesterday',
      'created_before=-1',
      'created_by=me',
      'created_after=1&created_after=2',
    ]) {
      expect((await maker.get(`${path}?${wrong}`)).status).toBe(400);
    }
  });

  it('403: a token needs team:read (SCOPE-1)', async () => {
    expect((await (await member.token({ scopes: ['team:read'] })).get(path)).status).toBe(200);
    const { status, body } = await (await member.token({ scopes: ['user:read', 'team:write'] })).get(path);
    expect([status, body.message]).toEqual([403, 'Insufficient scope. Required: team:read']);
  });

  it('takes three statements for a page, whatever is on it, each by index', async () => {
    const seen: string[] = [];
    const stop = watchStatements((sql) => void seen.push(sql));
    const statementsFor = async (query: string) => {
      seen.length = 0;
      expect((await member.get(`${path}?${query}`)).status).toBe(200);
      return seen.filter((sql) => sql.includes('"team_members"'));
    };
    const counts: number[] = [];
    for (const query of ['limit=1', 'limit=100', 'limit=100&search=team']) {
      counts.push((await statementsFor(query)).length);
    }
    const own = await statementsFor('limit=2&search=team');
    stop();
    expect(counts).toEqual([3, 3, 3]);
    const store = secondConnection(app);
    const plans = own.map((sql) => planOf(store, sql));
    store.close();
    expect(plans.flatMap(({ scans }) => scans)).toEqual([]);
    expect(plans.map(({ text }) => text).join('\n')).toContain('team_members_of_user');
  });
});
