import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { watchStatements } from '../../../test/support/statement-watch.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';

const second = 1_000;

describe('a user who is deleted leaves every team (TEAM-25)', () => {
  let app: TestApp;
  let admin: Client;
  let users: Record<'ann' | 'bob' | 'cid' | 'dot', Client>;
  let count = 0;

  beforeAll(async () => {
    app = await TestApp.start();
    // Whatever is asked of the store from here on, a request asks it.
    await app.services.relays.close();
    admin = await app.setUp();
    const made = ['ann', 'bob', 'cid', 'dot'].map(async (name) => {
      return [name, await app.member(admin, `${name}@example.com`, name)] as const;
    });
    users = Object.fromEntries(await Promise.all(made)) as typeof users;
  });
  afterAll(() => app.close());

  async function leaver(): Promise<Client> {
    count += 1;
    return app.member(admin, `leaver-${count}@example.com`, 'Leaver');
  }

  type Named = readonly [keyof typeof users, string];
  const list = (...named: readonly Named[]) => named.map(([who, role]) => ({ userId: users[who].userId, role }));

  /** Creates a team of an owner, to which users are added one after another, a second apart. */
  async function team(owner: Client, ...named: readonly Named[]): Promise<string> {
    const { id } = (await owner.post('/teams', { name: 'Research' })).body.team;
    for (const place of named.keys()) {
      app.clock.advance(second);
      const members = [{ userId: owner.userId, role: 'OWNER' }, ...list(...named.slice(0, place + 1))];
      expect((await owner.put(`/teams/${id}`, { members })).status).toBe(200);
    }
    return id;
  }
  async function rolesIn(id: string): Promise<Json> {
    const { members } = (await admin.get(`/teams/${id}`)).body.team;
    return Object.fromEntries(members.map(({ userName, role }: Json) => [userName, role]));
  }

  it('the writer of the longest standing owns a team that has no owner any more', async () => {
    const owner = await leaver();
    const id = await team(owner, ['ann', 'READER'], ['bob', 'WRITER'], ['cid', 'WRITER']);
    await app.deleteUser(owner.userId);
    expect(await rolesIn(id)).toEqual({ ann: 'READER', bob: 'OWNER', cid: 'WRITER' });
    expect((await users.bob.put(`/teams/${id}`, { name: 'Inherited' })).body.team.canManageMembers).toBe(true);
  });

  it('without a writer, the reader of the longest standing', async () => {
    const owner = await leaver();
    const id = await team(owner, ['dot', 'READER'], ['ann', 'READER']);
    await app.deleteUser(owner.userId);
    expect(await rolesIn(id)).toEqual({ dot: 'OWNER', ann: 'READER' });
  });

  it('of two who joined at once, always the same', async () => {
    const owner = await leaver();
    const { id } = (await owner.post('/teams', { name: 'Twins', members: list(['cid', 'READER'], ['ann', 'READER']) }))
      .body.team;
    await app.deleteUser(owner.userId);
    const [first = ''] = [users.ann.userId, users.cid.userId].sort();
    const name = first === users.ann.userId ? 'ann' : 'cid';
    expect((await rolesIn(id))[name]).toBe('OWNER');
  });

  it('no one inherits where another owner stays, or from anyone who owned nothing', async () => {
    const owner = await leaver();
    const shared = await team(owner, ['ann', 'OWNER'], ['bob', 'WRITER']);
    const members = [{ userId: owner.userId, role: 'WRITER' }, ...list(['bob', 'READER'])];
    const { id: foreign } = (await users.cid.post('/teams', { name: 'Foreign', members })).body.team;
    const audit = await app.audit();
    await app.deleteUser(owner.userId);
    expect(await rolesIn(shared)).toEqual({ ann: 'OWNER', bob: 'WRITER' });
    expect(await rolesIn(foreign)).toEqual({ cid: 'OWNER', bob: 'READER' });
    const since = (await app.audit()).slice(audit.length).map(({ action }) => action);
    expect(since.filter((action) => action === 'team.updated')).toEqual([]);
  });

  it('who inherits is written down, and who is restored is in no team (AUDIT-1)', async () => {
    const owner = await leaver();
    const id = await team(owner, ['ann', 'READER']);
    await app.deleteUser(owner.userId);
    const last = (await app.audit()).filter(({ subject_id }) => subject_id === id).at(-1);
    expect(last).toMatchObject({
      action: 'team.updated',
      actor_user_id: admin.userId,
      details: { owner: users.ann.userId, after: owner.userId },
    });
    expect((await admin.post(`/users/${owner.userId}/restore`)).status).toBe(200);
    expect(await rolesIn(id)).toEqual({ ann: 'OWNER' });
  });

  it('a refused deletion leaves the teams alone (USER-36)', async () => {
    const { id } = (await admin.post('/teams', { name: 'Mine', members: list(['ann', 'READER']) })).body.team;
    expect((await admin.delete(`/users/${admin.userId}`)).status).toBe(409);
    expect(await rolesIn(id)).toEqual({ 'Ada Lovelace': 'OWNER', ann: 'READER' });
  });

  it('a member who leaves many teams costs what one costs', async () => {
    let statements = 0;
    const stop = watchStatements(() => {
      statements += 1;
    });
    const costOf = async (teams: number) => {
      const gone = await leaver();
      const members = [{ userId: gone.userId, role: 'READER' }];
      for (let made = 0; made < teams; made += 1) await users.ann.post('/teams', { name: 'Many', members });
      statements = 0;
      await admin.delete(`/users/${gone.userId}`);
      return statements;
    };
    await costOf(1);
    expect(await costOf(20)).toBe(await costOf(1));
    stop();
  });
});
