import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { sendBegun } from '../../../test/support/raw-http.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';

describe('DELETE /teams/:id', () => {
  let app: TestApp;
  let admin: Client;
  let owner: Client;
  let reader: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    owner = await app.member(admin, 'olive@example.com');
    reader = await app.member(admin, 'rita@example.com');
  });
  afterAll(() => app.close());

  async function team(): Promise<Json> {
    const members = [{ userId: reader.userId, role: 'READER' }];
    return (await owner.post('/teams', { name: 'Research', members })).body.team;
  }
  async function rows(id: string): Promise<number> {
    const { read } = app.services.db;
    const teams = await read.selectFrom('teams').where('id', '=', id).select('id').execute();
    return (
      teams.length + (await read.selectFrom('team_members').where('team_id', '=', id).selectAll().execute()).length
    );
  }

  it('200: nothing of it stays but the audit row (TEAM-19, TEAM-28, AUDIT-1, EVENT-19)', async () => {
    const { id } = await team();
    const kept = await team();
    const events = await app.events();
    const { status, body } = await owner.delete(`/teams/${id}`);
    expect([status, body]).toEqual([200, { status: 'success', message: 'Team deleted successfully' }]);
    expect([await rows(id), await rows(kept.id)]).toEqual([0, 3]);
    expect((await app.audit()).at(-1)).toMatchObject({
      action: 'team.deleted',
      actor_user_id: owner.userId,
      subject_id: id,
      details: { name: 'Research' },
    });
    expect(await app.events()).toEqual(events);
    const lists = [owner, reader].map((client) => client.get('/teams/user/teams?limit=100'));
    for (const { text } of await Promise.all(lists)) expect(text).not.toContain(id);
  });

  it('200: by an administrator, of a team that no one is in any more (TEAM-20, TEAM-25)', async () => {
    const gone = await app.member(admin, 'gone@example.com');
    const { id } = (await gone.post('/teams', { name: 'Empty' })).body.team;
    await app.deleteUser(gone.userId);
    expect((await admin.get(`/teams/${id}`)).body.team).toMatchObject({ memberCount: 0, members: [], canDelete: true });
    expect((await reader.delete(`/teams/${id}`)).status).toBe(404);
    expect((await admin.delete(`/teams/${id}`)).status).toBe(200);
    expect(await rows(id)).toBe(0);
  });

  it('403: by an administrator who is none any more when it would be done (TEAM-20, AUTH-29)', async () => {
    const { id } = await team();
    const other = await app.member(admin, 'other@example.com');
    await app.promote(other.userId);
    const lines = ['host: x', `authorization: Bearer ${other.credential}`, 'content-type: application/json'];
    const head = [`DELETE /api/v1/teams/${id} HTTP/1.1`, ...lines, 'content-length: 2', '', ''].join('\r\n');
    const connection = await sendBegun(app, `${head}{`);
    await app.demote(other.userId);
    connection.send('}');
    const { answers: responses } = await connection.until((seen) => seen.answers.length > 0);
    connection.destroy();
    expect([responses[0]?.status, responses[0]?.body.error.code]).toEqual([403, 'ADMIN_REQUIRED']);
    expect(await rows(id)).toBe(3);
  });
});
