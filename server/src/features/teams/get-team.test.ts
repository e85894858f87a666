import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { watchStatements } from '../../../test/support/statement-watch.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';

describe('GET /teams/:id', () => {
  let app: TestApp;
  let admin: Client;
  let owner: Client;
  let reader: Client;
  let team: Json;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    owner = await app.member(admin, 'olive@example.com');
    reader = await app.member(admin, 'rita@example.com');
    const members = [{ userId: reader.userId, role: 'READER' }];
    team = (await owner.post('/teams', { name: 'Research', members })).body.team;
  });
  afterAll(() => app.close());

  it('200: the team as it was made, for anyone who is in it (TEAM-15, TEAM-19, TEAM-28)', async () => {
    const { body } = await owner.get(`/teams/${team.id}`);
    expect(body).toEqual({ status: 'success', message: 'Team fetched successfully', team });
    const rights = { canEdit: false, canDelete: false, canManageMembers: false };
    expect((await reader.get(`/teams/${team.id}`)).body.team).toEqual({ ...team, ...rights });
  });

  it('404: the same for a team of others as for none, and for anyone who is an administrator no more (TEAM-20, TEAM-21)', async () => {
    const stranger = await app.member(admin, 'stan@example.com');
    const foreign = await stranger.get(`/teams/${team.id}`);
    const absent = await stranger.get(`/teams/${'f'.repeat(24)}`);
    const plain = ({ body: { message, error } }: typeof foreign) => [message, error.code, error.message];
    expect([foreign.status, absent.status]).toEqual([404, 404]);
    expect(plain(foreign)).toEqual(plain(absent));
    await app.promote(stranger.userId);
    expect((await stranger.get(`/teams/${team.id}`)).status).toBe(200);
    await app.demote(stranger.userId);
    expect((await stranger.get(`/teams/${team.id}`)).status).toBe(404);
  });

  it('200: names and addresses are those of today (TEAM-16)', async () => {
    await reader.patch(`/users/${reader.userId}/fullname`, { fullName: 'Rita Renamed' });
    const { members } = (await owner.get(`/teams/${team.id}`)).body.team;
    expect(members.map(({ userName }: Json) => userName)).toContain('Rita Renamed');
  });

  it('reads a team by index, in two statements, however many there are', async () => {
    const seen: string[] = [];
    const stop = watchStatements((sql) => void seen.push(sql));
    await owner.get(`/teams/${team.id}`);
    stop();
    expect(seen.filter((sql) => /from "team/.test(sql))).toHaveLength(2);
  });
});
