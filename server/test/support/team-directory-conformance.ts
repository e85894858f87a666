import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Client, type Json, TestApp } from './test-app.ts';

/** A service whose team directory is to be tried, wherever it keeps its teams. */
export interface DirectoryUnderTest {
  readonly app: TestApp;
  /** Resolves when the directory knows all users of the service. */
  readonly settled: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** The directory that is part of the service. */
export async function builtInDirectory(): Promise<DirectoryUnderTest> {
  const app = await TestApp.start();
  return { app, settled: async () => undefined, close: () => app.close() };
}

const unknownId = 'f'.repeat(24);
const lists = ['/users/teams/list', '/teams/user/teams'];
const id = expect.stringMatching(/^[a-f0-9]{24}$/);

const namesOf = (items: readonly Json[]): string[] => items.map(({ name }) => name);
const search = (path: string, text: string) => `${path}?search=${encodeURIComponent(text)}`;

/** Requirements for every team directory, tested over HTTP and through the service alone. */
export function teamDirectoryConformance(name: string, open: () => Promise<DirectoryUnderTest>): void {
  describe(`the team directory, ${name}`, () => {
    let under: DirectoryUnderTest;
    let admin: Client;
    let owner: Client;
    let writer: Client;
    let reader: Client;
    let stranger: Client;

    beforeAll(async () => {
      under = await open();
      const { app } = under;
      admin = await app.setUp();
      owner = await app.member(admin, 'olive@example.com', 'Olive Owner');
      writer = await app.member(admin, 'walter@example.com', 'Walter Writer');
      reader = await app.member(admin, 'rita_100%@example.com', 'Rita Straße');
      stranger = await app.member(admin, 'stan@example.com', 'Stan Stranger');
      await under.settled();
    }, 60_000);
    afterAll(() => under.close());

    const members = () => [
      { userId: writer.userId, role: 'WRITER' },
      { userId: reader.userId, role: 'READER' },
    ];

    async function team(body: Json = {}, client = owner): Promise<Json> {
      const response = await client.post('/teams', { name: 'Research', members: members(), ...body });
      expect(response, response.text).toMatchObject({ status: 201, body: { status: 'success' } });
      return response.body.team;
    }

    /** Creates a user who is in no team yet. */
    async function newUser(): Promise<Client> {
      const client = await under.app.member(admin, `new-${crypto.randomUUID()}@example.com`, 'Nora Newcomer');
      await under.settled();
      return client;
    }

    it('200: lists the people who can be in teams, by name (TEAM-1, TEAM-14, TEAM-17, TEAM-26)', async () => {
      const { status, body } = await reader.get('/users/graph/list?limit=100');
      expect(status).toBe(200);
      expect(body).toMatchObject({ status: 'success', message: expect.any(String) });
      const total = body.users.length;
      expect(body.pagination).toEqual({ page: 1, limit: 100, total, pages: 1, hasNext: false, hasPrev: false });
      const { orgId } = JSON.parse(atob(reader.credential?.split('.')[1] ?? ''));
      expect(body.users.find(({ userId }: Json) => userId === owner.userId)).toEqual({
        id: owner.userId,
        userId: owner.userId,
        orgId,
        name: 'Olive Owner',
        email: 'olive@example.com',
        isActive: true,
        createdAtTimestamp: expect.any(Number),
        updatedAtTimestamp: expect.any(Number),
      });
      const names = namesOf(body.users);
      expect(names).toEqual([...names].sort((a, b) => a.toLowerCase().localeCompare(b.toLowerCase())));
      expect(names).toContain('Ada Lovelace');
    });

    it('200: a page of people after another gives everyone once (TEAM-17, TEAM-26)', async () => {
      const whole = (await owner.get('/users/graph/list?limit=100')).body.users;
      const seen: Json[] = [];
      for (let page = 1; page <= Math.ceil(whole.length / 2); page += 1) {
        const { users, pagination } = (await owner.get(`/users/graph/list?limit=2&page=${page}`)).body;
        const pages = Math.ceil(whole.length / 2);
        const ends = { hasNext: page < pages, hasPrev: page > 1 };
        expect(pagination).toEqual({ page, limit: 2, total: whole.length, pages, ...ends });
        seen.push(...users);
      }
      expect(seen).toEqual(whole);
    });

    it.each([
      ['OLIVE', 'Olive Owner'],
      ['strASSe', 'Rita Straße'],
      ['walter@', 'Walter Writer'],
      ['_100%@', 'Rita Straße'],
    ])('200: people are searched for %s, in any case and literally (TEAM-26)', async (text, found) => {
      const { body } = await owner.get(search('/users/graph/list', text));
      expect(namesOf(body.users)).toEqual([found]);
      expect(body.pagination).toMatchObject({ total: 1, pages: 1 });
    });

    it('200: a search that finds nothing has no pages (TEAM-17, TEAM-26)', async () => {
      for (const text of ['%', 'nobody', 'olive%', 'W_lter']) {
        const { body } = await owner.get(search('/users/graph/list', text));
        // The per cent sign itself is in one address.
        expect(body.users.length).toBe(text === '%' ? 1 : 0);
      }
      const { body } = await owner.get(search('/users/graph/list', 'nobody'));
      expect(body.pagination).toEqual({ page: 1, limit: 25, total: 0, pages: 0, hasNext: false, hasPrev: false });
    });

    it('201: a team with its members, whose owner the creator is (TEAM-15, TEAM-16, TEAM-18, FIT-74)', async () => {
      const made = await team({ description: 'Finds things out' });
      const member = (client: Client, userName: string, role: string) => ({
        id: client.userId,
        userId: client.userId,
        userName,
        userEmail: expect.stringContaining('@example.com'),
        role,
        joinedAt: made.createdAtTimestamp,
        isOwner: role === 'OWNER',
      });
      expect(made).toEqual({
        id,
        name: 'Research',
        description: 'Finds things out',
        createdByUser: { id: owner.userId, userId: owner.userId, name: 'Olive Owner', email: 'olive@example.com' },
        orgId: id,
        memberCount: 3,
        members: [
          member(owner, 'Olive Owner', 'OWNER'),
          member(reader, 'Rita Straße', 'READER'),
          member(writer, 'Walter Writer', 'WRITER'),
        ],
        createdAtTimestamp: expect.any(Number),
        updatedAtTimestamp: made.createdAtTimestamp,
        canEdit: true,
        canDelete: true,
        canManageMembers: true,
      });
      expect((await owner.get(`/teams/${made.id}`)).body.team).toEqual(made);
    });

    it('201: the creator is the owner, whatever the list says; without a list, alone (TEAM-18)', async () => {
      const named = await team({ members: [{ userId: owner.userId, role: 'READER' }] });
      expect(named.members).toMatchObject([{ userId: owner.userId, role: 'OWNER' }]);
      const alone = await team({ members: undefined, description: undefined });
      expect(alone).toMatchObject({ description: null, memberCount: 1, members: [{ role: 'OWNER' }] });
    });

    it.each(lists)(
      '200: GET %s has the teams of the caller alone, newest first (TEAM-2, TEAM-15, TEAM-26)',
      async (path) => {
        const client = await newUser();
        expect((await client.get(path)).body).toMatchObject({ status: 'success', teams: [], pagination: { total: 0 } });
        const first = await team({ name: 'First' }, client);
        const second = await team({ members: [{ userId: client.userId, role: 'READER' }], name: 'Second' });
        await team({ name: 'Not mine' });
        const { body } = await client.get(path);
        const rights = { canEdit: false, canDelete: false, canManageMembers: false };
        expect(body.teams).toEqual([{ ...second, ...rights }, first]);
        expect(body.pagination).toEqual({ page: 1, limit: 25, total: 2, pages: 1, hasNext: false, hasPrev: false });
        const { body: cut } = await client.get(`${path}?limit=1&page=2`);
        expect(cut.teams).toEqual([first]);
        expect(cut.pagination).toEqual({ page: 2, limit: 1, total: 2, pages: 2, hasNext: false, hasPrev: true });
        expect((await client.get(`${path}?page=3&limit=1`)).body.teams).toEqual([]);
      },
    );

    it.each(lists)(
      '200: GET %s is searched by name and description, in any case and literally (TEAM-26)',
      async (path) => {
        const client = await newUser();
        await team({ name: 'Größe 50%' }, client);
        await team({ name: 'Blue', description: 'Under_Score' }, client);
        const found = async (text: string) => namesOf((await client.get(search(path, text))).body.teams);
        expect(await found('GRÖSSE')).toEqual(['Größe 50%']);
        expect(await found('50%')).toEqual(['Größe 50%']);
        expect(await found('under_score')).toEqual(['Blue']);
        expect(await found('r_S')).toEqual(['Blue']);
        expect(await found('l_e')).toEqual([]);
        expect(await found('')).toEqual(['Blue', 'Größe 50%']);
      },
    );

    it.each(['/users/graph/list', ...lists, `/teams/${unknownId}/users`])(
      '400: GET %s with what is no page (TEAM-4)',
      async (path) => {
        const wrong = [
          'page=0',
          'page=-1',
          'page=x',
          'limit=0',
          'limit=101',
          'limit=1.5',
          'page=1&page=2',
          'search=%00',
        ];
        for (const query of wrong) {
          const { status, body } = await owner.get(`${path}?${query}`);
          expect([query, status, body.error.code]).toEqual([query, 400, 'VALIDATION_ERROR']);
        }
      },
    );

    it('who may do what: owner, writer, reader, administrator, anyone else (TEAM-19 to TEAM-21)', async () => {
      const { id: teamId } = await team();
      const path = `/teams/${teamId}`;
      const whole = [{ userId: owner.userId, role: 'OWNER' }, ...members()];
      const tried = async (client: Client) => [
        (await client.get(path)).status,
        (await client.get(`${path}/users`)).status,
        (await client.put(path, { name: 'Renamed' })).status,
        (await client.put(path, { members: whole })).status,
      ];
      expect(await tried(owner)).toEqual([200, 200, 200, 200]);
      expect(await tried(writer)).toEqual([200, 200, 200, 403]);
      expect(await tried(reader)).toEqual([200, 200, 403, 403]);
      expect(await tried(admin)).toEqual([200, 200, 403, 403]);
      expect(await tried(stranger)).toEqual([404, 404, 404, 404]);
      const removed = async (client: Client) => (await client.delete(path)).status;
      expect(await removed(writer)).toBe(403);
      expect(await removed(reader)).toBe(403);
      expect(await removed(stranger)).toBe(404);
      expect(await removed(admin)).toBe(200);
      expect(await removed(owner)).toBe(404);
      const { id: another } = await team();
      expect((await owner.delete(`/teams/${another}`)).body).toMatchObject({ status: 'success' });
      expect((await owner.get(`/teams/${another}`)).status).toBe(404);
    });

    it('200: each is told what they may do (TEAM-15, TEAM-19, TEAM-20)', async () => {
      const { id: teamId } = await team();
      const rights = async (client: Client) => {
        const { canEdit, canDelete, canManageMembers } = (await client.get(`/teams/${teamId}`)).body.team;
        return [canEdit, canDelete, canManageMembers];
      };
      expect(await rights(owner)).toEqual([true, true, true]);
      expect(await rights(writer)).toEqual([true, false, false]);
      expect(await rights(reader)).toEqual([false, false, false]);
      expect(await rights(admin)).toEqual([false, true, false]);
    });

    it('200: PUT replaces what is given and leaves the rest (TEAM-22)', async () => {
      const made = await team({ description: 'Old' });
      const put = async (body: Json) => {
        const response = await owner.put(`/teams/${made.id}`, body);
        expect(response.status, response.text).toBe(200);
        expect((await owner.get(`/teams/${made.id}`)).body.team).toEqual(response.body.team);
        const { updatedAtTimestamp: _, ...rest } = response.body.team;
        return rest;
      };
      const { updatedAtTimestamp: _, ...before } = made;
      expect(await put({ name: 'New' })).toEqual({ ...before, name: 'New' });
      expect(await put({ description: 'Newer' })).toEqual({ ...before, name: 'New', description: 'Newer' });
      expect(await put({ description: null })).toEqual({ ...before, name: 'New', description: null });
      const list = [
        { userId: owner.userId, role: 'OWNER' },
        { userId: stranger.userId, role: 'WRITER' },
      ];
      const { members: now, memberCount } = await put({ members: list });
      expect(now).toMatchObject(list);
      expect(memberCount).toBe(2);
      // Who stays has been there since the beginning.
      expect(now[0].joinedAt).toBe(made.createdAtTimestamp);
      expect((await reader.get(`/teams/${made.id}`)).status).toBe(404);
      expect((await stranger.get(`/teams/${made.id}`)).status).toBe(200);
    });

    it('200: adds members, changes their roles and removes them, with the rest of the list as it was (FIT-73)', async () => {
      const made = await team({ members: undefined, userRoles: members() });
      expect(made.memberCount).toBe(3);
      const path = `/teams/${made.id}`;
      const rolesAfter = async (body: Json) => {
        const response = await owner.put(path, body);
        expect(response.status, response.text).toBe(200);
        expect((await owner.get(path)).body.team).toEqual(response.body.team);
        return Object.fromEntries(response.body.team.members.map(({ userName, role }: Json) => [userName, role]));
      };
      const roles = { 'Olive Owner': 'OWNER', 'Rita Straße': 'READER' };
      expect(await rolesAfter({ removeUserIds: [writer.userId] })).toEqual(roles);
      const added = [{ userId: stranger.userId, role: 'WRITER' }];
      expect(await rolesAfter({ addUserRoles: added })).toEqual({ ...roles, 'Stan Stranger': 'WRITER' });
      const changed = {
        updateUserRoles: [{ userId: reader.userId, role: 'WRITER' }],
        removeUserIds: [stranger.userId],
      };
      expect(await rolesAfter(changed)).toEqual({ ...roles, 'Rita Straße': 'WRITER' });
    });

    it('400 and 409: changes of who is not there, and of the last owner; nothing changes (FIT-73, TEAM-23)', async () => {
      const made = await team();
      const role = (userId: string) => [{ userId, role: 'READER' }];
      const refused: [Json, number][] = [
        [{ removeUserIds: [stranger.userId] }, 400],
        [{ updateUserRoles: role(stranger.userId) }, 400],
        [{ addUserRoles: role(unknownId) }, 400],
        [{ removeUserIds: [owner.userId] }, 409],
        [{ updateUserRoles: role(owner.userId) }, 409],
      ];
      for (const [body, status] of refused) {
        expect([body, (await owner.put(`/teams/${made.id}`, { name: 'Changed', ...body })).status]).toEqual([
          body,
          status,
        ]);
      }
      expect((await writer.put(`/teams/${made.id}`, { removeUserIds: [reader.userId] })).status).toBe(403);
      expect((await owner.get(`/teams/${made.id}`)).body.team).toEqual(made);
    });

    it('200: lists are narrowed by who made a team and when (FIT-71)', async () => {
      const client = await newUser();
      const made = await team({}, client);
      await team({ members: [{ userId: client.userId, role: 'READER' }] });
      const count = async (query: string) => (await client.get(`/teams/user/teams?${query}`)).body.pagination.total;
      expect(await count('limit=5')).toBe(2);
      expect(await count(`created_by=${client.userId}`)).toBe(1);
      expect(await count(`created_after=${made.createdAtTimestamp + 86_400_000}`)).toBe(0);
      expect(await count(`created_before=${made.createdAtTimestamp - 1}`)).toBe(0);
    });

    it('200: an owner may hand a team over and leave it (TEAM-22, TEAM-23)', async () => {
      const { id: teamId } = await team();
      const response = await owner.put(`/teams/${teamId}`, { members: [{ userId: stranger.userId, role: 'OWNER' }] });
      expect(response).toMatchObject({ status: 200, body: { team: { memberCount: 1, canEdit: false } } });
      expect((await owner.get(`/teams/${teamId}`)).status).toBe(404);
      expect((await stranger.delete(`/teams/${teamId}`)).status).toBe(200);
    });

    it('409: no team is left without an owner, and nothing changes (TEAM-23)', async () => {
      const made = await team();
      for (const list of [[], members()]) {
        expect((await owner.put(`/teams/${made.id}`, { name: 'Changed', members: list })).status).toBe(409);
      }
      expect((await owner.get(`/teams/${made.id}`)).body.team).toEqual(made);
    });

    it('400: people who are not there cannot be in a team (TEAM-24)', async () => {
      const gone = await newUser();
      await under.app.deleteUser(gone.userId);
      await under.settled();
      const made = await team();
      for (const userId of [unknownId, gone.userId, made.id]) {
        const list = [
          { userId: owner.userId, role: 'OWNER' },
          { userId, role: 'READER' },
        ];
        const before = (await owner.get('/teams/user/teams')).body.pagination.total;
        expect((await owner.post('/teams', { name: 'Ghosts', members: list })).status).toBe(400);
        expect((await owner.put(`/teams/${made.id}`, { members: list })).status).toBe(400);
        expect((await owner.get('/teams/user/teams')).body.pagination.total).toBe(before);
      }
      expect((await owner.get(`/teams/${made.id}`)).body.team).toEqual(made);
    });

    it('400: what is no team is refused, by its field (TEAM-18, TEAM-22, TEAM-24)', async () => {
      const made = await team();
      const twice = [
        { userId: reader.userId, role: 'READER' },
        { userId: reader.userId.toUpperCase(), role: 'WRITER' },
      ];
      const wrong: Json = {
        name: ['', '  ', 'x'.repeat(256), 7, null, 'a\nb', '\u202eb'],
        description: ['x'.repeat(256), 7, ['x'], 'a\u0000b'],
        members: [7, 'x', {}, [7], [{ userId: 'x', role: 'READER' }], [{ userId: reader.userId }], twice],
      };
      wrong.members.push([{ userId: reader.userId, role: 'reader' }], [{ userId: reader.userId, role: 'ADMIN' }]);
      const cases = Object.entries<Json[]>(wrong).flatMap(([field, values]) => values.map((value) => [field, value]));
      for (const [field, value] of cases) {
        const created = await owner.post('/teams', { name: 'Right', [field]: value });
        const updated = await owner.put(`/teams/${made.id}`, { [field]: value });
        for (const { status, body } of [created, updated]) {
          expect([field, value, status, body.error.code]).toEqual([field, value, 400, 'VALIDATION_ERROR']);
          expect(body.error.details[0].field).toMatch(new RegExp(`^body(\\.${field}|$)`));
        }
      }
      expect((await owner.post('/teams', {})).status).toBe(400);
      expect((await owner.get(`/teams/${made.id}`)).body.team).toEqual(made);
    });

    it('200: lists the members of a team by name, paged and searched (TEAM-16, TEAM-17, TEAM-26, TEAM-27, FIT-75)', async () => {
      const made = await team();
      const path = `/teams/${made.id}/users`;
      const { body } = await reader.get(path);
      expect(body).toMatchObject({ status: 'success', message: expect.any(String), members: made.members });
      const ends = { hasNext: false, hasPrev: false };
      expect(body.pagination).toEqual({ page: 1, limit: 25, total: 3, totalCount: 3, pages: 1, ...ends });
      const rights = { canEdit: false, canDelete: false, canManageMembers: false };
      expect(body.team).toEqual({ ...made, ...rights });
      const { body: cut } = await reader.get(`${path}?limit=2&page=2`);
      expect(cut.team).toEqual({ ...made, ...rights, members: cut.members });
      expect(cut.members).toEqual(made.members.slice(2));
      const last = { hasNext: false, hasPrev: true };
      expect(cut.pagination).toEqual({ page: 2, limit: 2, total: 3, totalCount: 3, pages: 2, ...last });
      expect((await reader.get(search(path, 'WALTER'))).body.members).toEqual(made.members.slice(2));
      expect((await reader.get(search(path, 'rita_100%'))).body.members).toEqual(made.members.slice(1, 2));
      expect((await reader.get(search(path, '_alter'))).body.members).toEqual([]);
    });

    it('404: a team that is not there, and 400 what is no id anywhere (TEAM-21, FIT-70)', async () => {
      for (const client of [owner, admin]) {
        const tries = [
          client.get(`/teams/${unknownId}`),
          client.get(`/teams/${unknownId}/users`),
          client.put(`/teams/${unknownId}`, { name: 'x' }),
          client.delete(`/teams/${unknownId}`),
        ];
        for (const { status } of await Promise.all(tries)) expect(status).toBe(404);
      }
      for (const path of ['/teams/..%2fuser', `/teams/${'x'.repeat(129)}`, '/teams/a%20b']) {
        expect((await owner.get(path)).status).toBe(400);
        expect((await owner.delete(path)).status).toBe(400);
      }
    });

    it('200: anyone who is deleted is in no team any more (TEAM-25)', async () => {
      const gone = await newUser();
      const made = await team({ members: [{ userId: gone.userId, role: 'READER' }] });
      await under.app.deleteUser(gone.userId);
      await under.settled();
      const { body } = await owner.get(`/teams/${made.id}`);
      expect(body.team.members).toMatchObject([{ userId: owner.userId }]);
      expect((await owner.get(`/users/graph/list?search=${gone.userId}`)).body.users).toEqual([]);
    });
  });
}
