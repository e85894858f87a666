import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addManyUsers } from '../../../test/support/many-users.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';

describe('GET /teams/:id/users', () => {
  let app: TestApp;
  let owner: Client;
  let team: Json;

  beforeAll(async () => {
    app = await TestApp.start();
    const admin = await app.setUp();
    owner = await app.member(admin, 'olive@example.com', 'Olive');
    const members = (await addManyUsers(app, 60)).map((userId) => ({ userId, role: 'READER' }));
    team = (await owner.post('/teams', { name: 'Research', members })).body.team;
  });
  afterAll(() => app.close());

  it('200: 25 at a time without a limit, in the order of the whole team (TEAM-26, TEAM-27, FIT-75)', async () => {
    const seen: Json[] = [];
    for (const page of [1, 2, 3]) {
      const { body } = await owner.get(`/teams/${team.id}/users?page=${page}`);
      const ends = { hasNext: page < 3, hasPrev: page > 1 };
      expect(body.pagination).toEqual({ page, limit: 25, total: 61, totalCount: 61, pages: 3, ...ends });
      expect(body.team).toEqual({ ...team, members: body.members });
      seen.push(...body.members);
    }
    expect(seen).toEqual(team.members);
  });

  it('200: the team says who made it, by the last verified address (FIT-74, ADDRESS-15)', async () => {
    const { userId } = owner;
    await owner.patch(`/users/${userId}/email`, { email: 'claimed@example.com' });
    const maker = { id: userId, userId, name: 'Olive', email: 'olive@example.com' };
    expect((await owner.get(`/teams/${team.id}/users`)).body.team.createdByUser).toEqual(maker);
    expect((await owner.get('/teams/user/teams')).body.teams[0].createdByUser).toEqual(maker);
  });

  it('200: a page beyond the end is empty (TEAM-17)', async () => {
    const { body } = await owner.get(`/teams/${team.id}/users?page=1000000`);
    expect(body).toMatchObject({ members: [], pagination: { total: 61, pages: 3, hasNext: false, hasPrev: true } });
  });

  it('200: people of the organization who are not in the team are not found (TEAM-27)', async () => {
    expect((await owner.get(`/teams/${team.id}/users?search=Ada`)).body.members).toEqual([]);
    expect((await owner.get(`/teams/${team.id}/users?search=USER+`)).body).toMatchObject({
      team: { memberCount: 61 },
      pagination: { total: 60, totalCount: 60 },
    });
  });
});
