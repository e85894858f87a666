import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addManyUsers } from '../../../test/support/many-users.ts';
import { watchStatements } from '../../../test/support/statement-watch.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';

const unknownId = 'f'.repeat(24);

describe('POST /teams', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;
  let users: string[];

  beforeAll(async () => {
    app = await TestApp.start();
    // Whatever is asked of the store from here on, a request asks it.
    await app.services.relays.close();
    admin = await app.setUp();
    member = await app.member(admin, 'grace@example.com');
    users = await addManyUsers(app, 1_001);
  });
  afterAll(() => app.close());

  const readers = (ids: readonly string[]) => ids.map((userId) => ({ userId, role: 'READER' }));
  const countTeams = async () => (await app.services.db.read.selectFrom('teams').selectAll().execute()).length;
  const lastAudit = async () => (await app.audit()).at(-1);

  it('201: the text is stored as every other is, trimmed and composed, and null stands for no description (TEAM-18, TEAM-28)', async () => {
    const { body } = await member.post('/teams', { name: '  Caf\u0065\u0301 <b>%s</b>  ', description: '' });
    expect(body.team).toMatchObject({ name: 'Caf\u00e9 <b>%s</b>', description: null, memberCount: 1 });
    expect(body.message).toBe('Team created successfully');
  });

  it('201: two teams may have one name (TEAM-18)', async () => {
    const teams = [await member.post('/teams', { name: 'Twins' }), await member.post('/teams', { name: 'Twins' })];
    expect(teams.map(({ status }) => status)).toEqual([201, 201]);
    expect(new Set(teams.map(({ body }) => body.team.id)).size).toBe(2);
  });

  it('201: with a thousand members, the creator included; 400 with more (TEAM-24)', async () => {
    const most = await member.post('/teams', { name: 'Most', members: readers(users.slice(0, 999)) });
    expect([most.status, most.body.team.memberCount]).toEqual([201, 1_000]);
    const named = [{ userId: member.userId, role: 'READER' }, ...readers(users.slice(0, 999))];
    expect((await member.post('/teams', { name: 'Most', members: named })).status).toBe(201);
    const before = await countTeams();
    for (const count of [1_000, 1_001]) {
      const { status, body } = await member.post('/teams', { name: 'More', members: readers(users.slice(0, count)) });
      expect([status, body.error.details[0].field]).toEqual([400, 'body.members']);
      expect(body.message).toContain('must have at most 1000 items');
    }
    expect(await countTeams()).toBe(before);
  });

  it('201: as many statements with a thousand members as with one', async () => {
    let count = 0;
    const stop = watchStatements(() => {
      count += 1;
    });
    const counted = async (members: Json) => {
      count = 0;
      expect((await member.post('/teams', { name: 'Counted', members })).status).toBe(201);
      return count;
    };
    await counted(readers(users.slice(0, 1)));
    const few = await counted(readers(users.slice(0, 1)));
    expect(await counted(readers(users.slice(0, 999)))).toBe(few);
    stop();
  });

  it('400: names those that do not exist, at most twenty of them, and makes nothing (TEAM-24)', async () => {
    const before = { teams: await countTeams(), audit: await app.audit() };
    const members = readers([users[0] ?? '', unknownId]);
    const { status, body } = await member.post('/teams', { name: 'Ghosts', members });
    expect(status).toBe(400);
    expect(body.error.details).toEqual([{ field: 'body.members.1.userId', message: `${unknownId} does not exist` }]);
    const many = Array.from({ length: 30 }, (_, place) => String(place).padStart(24, 'f'));
    expect((await member.post('/teams', { name: 'Ghosts', members: readers(many) })).body.error.details).toHaveLength(
      20,
    );
    expect({ teams: await countTeams(), audit: await app.audit() }).toEqual(before);
  });

  it('400: no one is named twice (TEAM-24)', async () => {
    const [id = ''] = users;
    const { status, body } = await member.post('/teams', { name: 'Twice', members: readers([id, id.toUpperCase()]) });
    expect([status, body.error.details]).toEqual([
      400,
      [{ field: 'body.members.1.userId', message: 'is named twice' }],
    ]);
  });

  it('400: unknown fields are never applied, and are named (TEAM-18, FIT-72)', async () => {
    const before = await countTeams();
    const forged = {
      id: unknownId,
      orgId: unknownId,
      createdByUser: admin.userId,
      createdAtTimestamp: 1,
      canEdit: false,
    };
    const { status, body } = await member.post('/teams', { name: 'Plain', ...forged });
    expect([status, body.error.details.map(({ field }: Json) => field)]).toEqual([
      400,
      Object.keys(forged).map((key) => `body.${key}`),
    ]);
    const misspelled = await member.post('/teams', { name: 'Plain', userRole: [] });
    expect(misspelled.body.error.details).toEqual([
      { field: 'body.userRole', message: 'is not a known key: did you mean userRoles?' },
    ]);
    const both = await member.post('/teams', { name: 'Plain', members: [], userRoles: [] });
    expect([both.status, both.body.error.details[0].field]).toEqual([400, 'body.userRoles']);
    expect(await countTeams()).toEqual(before);
  });

  it('writes an audit row and no event (AUDIT-1, EVENT-19)', async () => {
    const events = await app.events();
    const token = await member.token({ scopes: ['team:write'] });
    const members = readers(users.slice(0, 1));
    const { body } = await token.post('/teams', { name: 'Audited', members });
    expect(await lastAudit()).toMatchObject({
      action: 'team.created',
      actor_user_id: member.userId,
      actor_token_id: token.tokenId,
      subject_id: body.team.id,
      details: { name: 'Audited', members: [{ userId: member.userId, role: 'OWNER' }, ...members] },
    });
    expect(await app.events()).toEqual(events);
  });
});
