import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addManyUsers } from '../../../test/support/many-users.ts';
import { sendBegun } from '../../../test/support/raw-http.ts';
import { watchStatements } from '../../../test/support/statement-watch.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';

const unknownId = 'f'.repeat(24);
const second = 1_000;

describe('PUT /teams/:id', () => {
  let app: TestApp;
  let admin: Client;
  let owner: Client;
  let writer: Client;
  let reader: Client;
  let users: string[];

  beforeAll(async () => {
    app = await TestApp.start();
    // Whatever is asked of the store from here on, a request asks it.
    await app.services.relays.close();
    admin = await app.setUp();
    owner = await app.member(admin, 'olive@example.com', 'Olive');
    writer = await app.member(admin, 'walter@example.com', 'Walter');
    reader = await app.member(admin, 'rita@example.com', 'Rita');
    users = await addManyUsers(app, 1_000);
  });
  afterAll(() => app.close());

  const named = (client: Client, role: string) => ({ userId: client.userId, role });
  const members = () => [named(writer, 'WRITER'), named(reader, 'READER')];

  async function team(): Promise<Json> {
    return (await owner.post('/teams', { name: 'Research', description: 'Old', members: members() })).body.team;
  }
  async function stored(id: string): Promise<Json> {
    const { read } = app.services.db;
    const inIt = read.selectFrom('team_members').where('team_id', '=', id).orderBy('user_id').selectAll();
    return {
      team: await read.selectFrom('teams').where('id', '=', id).selectAll().executeTakeFirst(),
      members: await inIt.execute(),
    };
  }
  const rolesOf = ({ members: all }: Json) =>
    Object.fromEntries(all.map(({ userName, role }: Json) => [userName, role]));

  it('200: what was given is new, and so is the moment of the change (TEAM-22)', async () => {
    const made = await team();
    app.clock.advance(5 * second);
    const { status, body } = await writer.put(`/teams/${made.id}`, { name: ' New ', description: 'Newer' });
    expect([status, body.message]).toEqual([200, 'Team updated successfully']);
    const rights = { canDelete: false, canManageMembers: false };
    const changed = { name: 'New', description: 'Newer', updatedAtTimestamp: app.clock.now(), ...rights };
    expect(body.team).toEqual({ ...made, ...changed });
    const found = async (text: string) => (await owner.get(`/teams/user/teams?search=${text}`)).body.pagination.total;
    // It is found by the new texts and no longer by the old ones.
    expect([await found('NEWER'), await found('Old')]).toEqual([1, 0]);
  });

  it('400: nothing known given changes nothing, and the unknown is named (FIT-72)', async () => {
    const made = await team();
    const before = [await stored(made.id), await app.audit()];
    app.clock.advance(5 * second);
    const problemsOf = async (body: Json) => {
      const { status, body: error } = await owner.put(`/teams/${made.id}`, body);
      return [status, ...error.error.details.map(({ field, message }: Json) => `${field} ${message}`)];
    };
    expect(await problemsOf({ unknown: 1 })).toEqual([400, 'body.unknown is not a known key']);
    expect(await problemsOf({ removeUserId: [] })).toEqual([
      400,
      'body.removeUserId is not a known key: did you mean removeUserIds?',
    ]);
    const known = 'name, description, members, addUserRoles, updateUserRoles, removeUserIds';
    expect(await problemsOf({})).toEqual([400, `body must have one of ${known}`]);
    expect([await stored(made.id), await app.audit()]).toEqual(before);
  });

  it('400: lists that contradict each other change nothing (FIT-73)', async () => {
    const made = await team();
    const before = await stored(made.id);
    const removeUserIds = [reader.userId];
    for (const [body, field] of [
      [{ members: [named(owner, 'OWNER')], removeUserIds }, 'body.removeUserIds.0'],
      [{ addUserRoles: [named(reader, 'WRITER')], removeUserIds }, 'body.removeUserIds.0'],
      [{ removeUserIds: [reader.userId, reader.userId] }, 'body.removeUserIds.1'],
    ] as const) {
      const { status, body: error } = await owner.put(`/teams/${made.id}`, body);
      expect([status, error.error.details[0].field]).toEqual([400, field]);
    }
    expect(await stored(made.id)).toEqual(before);
  });

  it('200: a change of some members keeps the others, and is written down (FIT-73, AUDIT-9)', async () => {
    const made = await team();
    app.clock.advance(5 * second);
    const { body } = await owner.put(`/teams/${made.id}`, { removeUserIds: [reader.userId] });
    expect(rolesOf(body.team)).toEqual({ Olive: 'OWNER', Walter: 'WRITER' });
    expect(body.team.members.map(({ joinedAt }: Json) => joinedAt)).toEqual(Array(2).fill(made.createdAtTimestamp));
    expect((await app.audit()).at(-1)).toMatchObject({
      action: 'team.updated',
      subject_id: made.id,
      details: { fields: ['removeUserIds'] },
      changes: { members: { before: expect.any(Array), after: expect.any(Array) } },
    });
  });

  it('200: the list is the whole new list; who stays keeps the moment of joining (TEAM-22)', async () => {
    const made = await team();
    app.clock.advance(5 * second);
    const list = [named(owner, 'OWNER'), named(reader, 'WRITER'), named(admin, 'READER')];
    const { body } = await owner.put(`/teams/${made.id}`, { members: list });
    expect(rolesOf(body.team)).toEqual({ 'Ada Lovelace': 'READER', Olive: 'OWNER', Rita: 'WRITER' });
    const joined = Object.fromEntries(body.team.members.map(({ userName, joinedAt }: Json) => [userName, joinedAt]));
    const atFirst = made.createdAtTimestamp;
    expect(joined).toEqual({ 'Ada Lovelace': app.clock.now(), Olive: atFirst, Rita: atFirst });
    expect((await writer.get(`/teams/${made.id}`)).status).toBe(404);
  });

  it('403: a writer cannot give a list, not even the same one, and learns nothing of who is there (TEAM-19)', async () => {
    const made = await team();
    const before = await stored(made.id);
    for (const list of [[named(owner, 'OWNER'), ...members()], [{ userId: unknownId, role: 'OWNER' }], []]) {
      const { status, body } = await writer.put(`/teams/${made.id}`, { name: 'Taken', members: list });
      expect([status, body.error.code]).toEqual([403, 'FORBIDDEN']);
      expect(body.message).toBe('Your role in this team does not allow this');
    }
    expect(await stored(made.id)).toEqual(before);
  });

  it('403: an administrator reads and deletes, and is no owner (TEAM-20, TEAM-21)', async () => {
    const made = await team();
    for (const body of [{ name: 'Taken' }, { members: [named(admin, 'OWNER')] }, { removeUserIds: [owner.userId] }]) {
      expect((await admin.put(`/teams/${made.id}`, body)).status).toBe(403);
    }
  });

  it('400: names those that do not exist, and changes nothing (TEAM-24)', async () => {
    const made = await team();
    const before = [await stored(made.id), await app.audit()];
    const list = [named(owner, 'OWNER'), { userId: unknownId, role: 'READER' }];
    const { status, body } = await owner.put(`/teams/${made.id}`, { name: 'Ghosts', members: list });
    const details = [{ field: 'body.members.1.userId', message: `${unknownId} does not exist` }];
    expect([status, body.error.details]).toEqual([400, details]);
    expect([await stored(made.id), await app.audit()]).toEqual(before);
  });

  it('409: with words that say what is missing (TEAM-23)', async () => {
    const made = await team();
    const before = [await stored(made.id), await app.audit()];
    const { status, body } = await owner.put(`/teams/${made.id}`, { name: 'Orphan', members: members() });
    expect([status, body.error.code]).toEqual([409, 'CONFLICT']);
    expect(body.message).toBe('A team needs an owner: name at least one member with the role OWNER');
    expect([await stored(made.id), await app.audit()]).toEqual(before);
  });

  it('200: as many statements for a thousand members as for one; 400 for more (TEAM-24)', async () => {
    const made = await team();
    let count = 0;
    const stop = watchStatements(() => {
      count += 1;
    });
    const counted = async (ids: readonly string[]) => {
      count = 0;
      const list = [named(owner, 'OWNER'), ...ids.map((userId) => ({ userId, role: 'READER' }))];
      const { status, body } = await owner.put(`/teams/${made.id}`, { members: list });
      return [count, status, body.team?.memberCount];
    };
    await counted([]);
    const [few] = await counted(users.slice(0, 1));
    expect(await counted(users.slice(0, 999))).toEqual([few, 200, 1_000]);
    stop();
    expect((await counted(users))[1]).toBe(400);
  });

  it('writes down what was given, and no event (AUDIT-1, EVENT-19)', async () => {
    const made = await team();
    const events = await app.events();
    const list = [named(owner, 'OWNER')];
    await owner.put(`/teams/${made.id}`, { description: null, members: list });
    expect((await app.audit()).at(-1)).toMatchObject({
      action: 'team.updated',
      actor_user_id: owner.userId,
      subject_id: made.id,
      details: { fields: ['description', 'members'] },
      changes: { members: { before: expect.any(Array), after: list } },
    });
    expect(await app.events()).toEqual(events);
  });

  /** Sends all but the last byte of a change; it is decided when `finish` is called. */
  async function begin(client: Client, id: string, body: Json) {
    const text = JSON.stringify(body);
    const lines = ['Host: x', `Authorization: Bearer ${client.credential}`, 'Content-Type: application/json'];
    const head = [`PUT /api/v1/teams/${id} HTTP/1.1`, ...lines, `Content-Length: ${text.length}`, '', ''];
    const connection = await sendBegun(app, head.join('\r\n') + text.slice(0, -1));
    return {
      finish: async () => {
        connection.send(text.slice(-1));
        const { answers: responses } = await connection.until((seen) => seen.answers.length > 0);
        connection.destroy();
        return responses[0];
      },
    };
  }

  it('404 for the second of two owners who remove each other at once: one is left (TEAM-23)', async () => {
    const made = await team();
    await owner.put(`/teams/${made.id}`, { members: [named(owner, 'OWNER'), named(writer, 'OWNER')] });
    const { finish } = await begin(writer, made.id, { members: [named(writer, 'OWNER')] });
    expect((await owner.put(`/teams/${made.id}`, { members: [named(owner, 'OWNER')] })).status).toBe(200);
    expect((await finish())?.status).toBe(404);
    expect((await stored(made.id)).members).toMatchObject([{ user_id: owner.userId, role: 'OWNER' }]);
  });

  it('403 for a writer who became a reader meanwhile (TEAM-19)', async () => {
    const made = await team();
    const { finish } = await begin(writer, made.id, { name: 'Too late' });
    const list = [named(owner, 'OWNER'), named(writer, 'READER')];
    expect((await owner.put(`/teams/${made.id}`, { members: list })).status).toBe(200);
    expect((await finish())?.status).toBe(403);
    expect((await stored(made.id)).team.name).toBe('Research');
  });

  it('400 for a list with someone who was deleted meanwhile: no one who is deleted is in a team (TEAM-24, TEAM-25)', async () => {
    const made = await team();
    const gone = await app.member(admin, 'gone@example.com');
    const { finish } = await begin(owner, made.id, { members: [named(owner, 'OWNER'), named(gone, 'READER')] });
    await app.deleteUser(gone.userId);
    expect((await finish())?.body.error.details[0].message).toBe(`${gone.userId} does not exist`);
    const { members: left } = await stored(made.id);
    expect(left.map(({ user_id }: Json) => user_id)).not.toContain(gone.userId);
  });
});
