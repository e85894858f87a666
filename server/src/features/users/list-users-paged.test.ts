import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addManyUsers } from '../../../test/support/many-users.ts';
import { type Client, type Json, TestApp } from '../../../test/support/test-app.ts';

const emailsOf = ({ users }: { users: Json[] }): string[] => users.map(({ email }) => email);

const badPages = [
  '0',
  '-1',
  '+1',
  '01',
  '1.0',
  '1e0',
  ' 1',
  '1 ',
  '0x1',
  '٣',
  '1000001',
  '9'.repeat(400),
  '',
  'x',
  '[]',
];
const badValues = [
  ['limit', '0'],
  ['limit', '101'],
  ['limit', '-5'],
  ['limit', ''],
  ['limit', '25.5'],
  ['sortBy', ''],
  ['sortBy', 'fullname'],
  ['sortBy', 'id'],
  ['sortBy', 'email desc'],
  ['sortBy', 'fullName,email'],
  ['sortOrder', ''],
  ['sortOrder', 'ASC'],
  ['sortOrder', 'descending'],
  ['hasLoggedIn', ''],
  ['hasLoggedIn', 'TRUE'],
  ['hasLoggedIn', '1'],
  ['hasLoggedIn', 'null'],
  ['search', 'a\nb'],
  ['search', '\u202e'],
  ['search', 'x'.repeat(256)],
  ['search', 'x\0'],
  ['groupIds', ''],
  ['groupIds', ','],
  ['groupIds', 'x'],
  ['groupIds', `${'a'.repeat(24)},`],
  ['groupIds', `${'a'.repeat(24)}, ${'b'.repeat(24)}`],
  ['groupIds', 'a'.repeat(25)],
  ['groupIds', Array.from({ length: 101 }, () => 'a'.repeat(24)).join(',')],
].map(([name = '', value = '']) => ({ name, value, shown: value.slice(0, 30) }));

describe('GET /users, one page', () => {
  let app: TestApp;
  let admin: Client;
  let deletedId: string;
  const total = 62;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    [deletedId = ''] = await addManyUsers(app, total);
    await app.deleteUser(deletedId);
  });
  afterAll(() => app.close());

  it.each([
    ['page=1', 25, 1],
    ['limit=25', 25, 1],
    ['search=', 25, 1],
    ['sortBy=fullName', 25, 1],
    ['sortOrder=asc', 25, 1],
    ['limit=7&page=2', 7, 2],
    ['_=1&page=3', 12, 3],
    ['limit=1&page=62', 1, 62],
    ['limit=100', total, 1],
  ])('200: ?%s answers the paged form (USER-14, USER-15)', async (query, count, page) => {
    const { status, body } = await admin.get(`/users?${query}`);
    const limit = Number(/limit=(\d+)/.exec(query)?.[1] ?? 25);
    const totalPages = Math.ceil(total / limit);
    expect(status).toBe(200);
    expect(body.users).toHaveLength(count);
    const ends = { hasNextPage: page < totalPages, hasPrevPage: page > 1 };
    expect(body.pagination).toEqual({ page, limit, totalCount: total, totalPages, ...ends });
  });

  it('200: every page in turn gives everyone once, as the bare array has them (USER-14, USER-1)', async () => {
    const seen: Json[] = [];
    let hasNext = true;
    for (let page = 1; hasNext; page += 1) {
      const { body } = await admin.get(`/users?sortBy=createdAt&limit=10&page=${page}`);
      expect(body.pagination.totalCount).toBe(total);
      seen.push(...body.users);
      hasNext = body.pagination.hasNextPage;
    }
    const whole = (await admin.get('/users')).body;
    expect(seen).toEqual(whole.map((user: Json) => expect.objectContaining(user)));
    expect(seen.map(({ _id }) => _id)).not.toContain(deletedId);
  });

  it('200: a page beyond the end is empty and says what there is (USER-14)', async () => {
    for (const page of [4, 1_000_000]) {
      const { status, body } = await admin.get(`/users?page=${page}`);
      expect([status, body.users]).toEqual([200, []]);
      const ends = { hasNextPage: false, hasPrevPage: true };
      expect(body.pagination).toEqual({ page, limit: 25, totalCount: total, totalPages: 3, ...ends });
    }
  });

  it('200: nothing found has no pages (USER-14)', async () => {
    const { body } = await admin.get('/users?search=nobody-is-called-that');
    const ends = { hasNextPage: false, hasPrevPage: false };
    expect(body).toEqual({ users: [], pagination: { page: 1, limit: 25, totalCount: 0, totalPages: 0, ...ends } });
  });

  it('200: the parameter that is dropped leaves the bare array as it is (USER-1, USER-14, CRED-3)', async () => {
    const bare = (await admin.get('/users')).body;
    expect(bare).toHaveLength(total);
    for (const query of ['', '_=1', '_=']) expect((await admin.get(`/users?${query}`)).body).toEqual(bare);
  });

  it.each([
    ['unknown=1&page=3', ['unknown']],
    ['x=1', ['x']],
    ['Page=1', ['Page']],
    ['pageSize=5&offset=5', ['pageSize', 'offset']],
    ['isDeleted=true', ['isDeleted']],
    ['orgId=1&page%5B%5D=2', ['orgId', 'page[]']],
  ])('400: parameters that no one knows are named: %s (USER-14, CRED-3)', async (query, names) => {
    const { status, body } = await admin.get(`/users?${query}`);
    expect([status, body.error.code]).toEqual([400, 'VALIDATION_ERROR']);
    expect(body.error.details.map(({ field }: Json) => field)).toEqual(names.map((name) => `query.${name}`));
  });

  it.each(badPages)('400: page=%j, and it is named (USER-15, HTTP-21)', async (page) => {
    const { status, body } = await admin.get(`/users?page=${encodeURIComponent(page)}`);
    expect([status, body.error.code]).toEqual([400, 'VALIDATION_ERROR']);
    expect(body.error.details.map(({ field }: Json) => field)).toEqual(['query.page']);
  });

  it.each(badValues)('400: $name=$shown, and it is named (USER-15, USER-17, USER-18)', async ({ name, value }) => {
    const { status, body } = await admin.get(`/users?${name}=${encodeURIComponent(value)}`);
    expect([status, body.error.code]).toEqual([400, 'VALIDATION_ERROR']);
    for (const { field } of body.error.details) expect(field).toMatch(new RegExp(`^query\\.${name}(\\.\\d+)?$`));
  });

  it.each(['page', 'limit', 'search', 'sortBy', 'sortOrder', 'hasLoggedIn', 'groupIds'])(
    '400: %s twice, even with a good value (USER-14, HTTP-14)',
    async (name) => {
      const good: Json = { sortBy: 'email', sortOrder: 'asc', hasLoggedIn: 'true', groupIds: 'a'.repeat(24) };
      const value = good[name] ?? '1';
      expect((await admin.get(`/users?${name}=${value}`)).status).toBe(200);
      const { status, body } = await admin.get(`/users?${name}=${value}&${name}=${value}`);
      expect([status, body.error.details[0].field]).toEqual([400, `query.${name}`]);
    },
  );

  it('400: all that is wrong is told at once', async () => {
    const { body } = await admin.get('/users?page=0&limit=0&sortBy=x&sortOrder=x&hasLoggedIn=x&groupIds=x');
    const fields = ['page', 'limit', 'sortBy', 'sortOrder', 'hasLoggedIn', 'groupIds.0'];
    expect(body.error.details.map(({ field }: Json) => field)).toEqual(fields.map((name) => `query.${name}`));
  });

  it('403 before the query is looked at (HTTP-2)', async () => {
    const token = await admin.token({ scopes: ['org:read'] });
    for (const query of ['page=0', 'page=1', 'sortBy=x']) {
      expect((await token.get(`/users?${query}`)).body.message).toBe('Insufficient scope. Required: user:read');
    }
    expect((await app.anonymous.get('/users?page=0')).status).toBe(401);
  });
});

describe('GET /users, sorted and filtered', () => {
  let app: TestApp;
  let admin: Client;
  const users = [
    ['müller', 'd@example.com'],
    ['Zoe', 'c@example.com'],
    ['MÜLLER', 'b@example.com'],
    ['anna', 'y@example.com'],
    ['Anna', 'x@example.com'],
    ['Ωmega', 'o@example.com'],
    ['ωmega', 'n@example.com'],
    ['Борис', 'm@example.com'],
    ['борис', 'l@example.com'],
    ['山田', 'k@example.com'],
    ['😀', 'j@example.com'],
    ['10', 'i@example.com'],
  ] as const;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    for (const [fullName, email] of users) {
      app.clock.advance(1_000);
      await admin.post('/users', { fullName, email });
    }
  });
  afterAll(() => app.close());

  const list = async (query: string) => emailsOf((await admin.get(`/users?limit=100&${query}`)).body);

  it('200: by name, in any case, equal names in order of creation (USER-17)', async () => {
    const letters = ['i', 'ada', 'y', 'x', 'd', 'b', 'c', 'o', 'n', 'm', 'l', 'k', 'j'];
    const sorted = letters.map((local) => `${local}@example.com`);
    expect(await list('sortBy=fullName')).toEqual(sorted);
    expect(await list('page=1')).toEqual(sorted);
    expect(await list('sortOrder=desc')).toEqual([...sorted].reverse());
  });

  it('200: by address and by creation, in either order (USER-17)', async () => {
    const created = ['ada@example.com', ...users.map(([, email]) => email)];
    expect(await list('sortBy=createdAt')).toEqual(created);
    expect(await list('sortBy=createdAt&sortOrder=desc')).toEqual([...created].reverse());
    expect(await list('sortBy=email')).toEqual([...created].sort());
    expect(await list('sortBy=email&sortOrder=desc')).toEqual([...created].sort().reverse());
  });

  it('200: a changed name is sorted and found as it is now (USER-16, USER-17)', async () => {
    const { body } = await admin.post('/users', { fullName: 'Zz Before', email: 'changed@example.com' });
    expect((await list('sortBy=fullName')).at(0)).not.toBe('changed@example.com');
    await admin.patch(`/users/${body._id}/fullname`, { fullName: '! First' });
    expect((await list('sortBy=fullName')).at(0)).toBe('changed@example.com');
    expect([await list('search=before'), await list('search=FIRST')]).toEqual([[], ['changed@example.com']]);
    await app.deleteUser(body._id);
    expect(await list('search=first')).toEqual([]);
  });

  it('200: equal moments of creation keep one order over all pages (USER-17)', async () => {
    const ids = await addManyUsers(app, 30, (number) => ({ email: `tie${number}@example.com`, fullName: 'Tie' }));
    for (const sortBy of ['createdAt', 'fullName']) {
      for (const sortOrder of ['asc', 'desc']) {
        const seen: string[] = [];
        for (let page = 1; page <= 8; page += 1) {
          const query = `search=tie&sortBy=${sortBy}&sortOrder=${sortOrder}&limit=4&page=${page}`;
          seen.push(...(await admin.get(`/users?${query}`)).body.users.map(({ _id }: Json) => _id));
        }
        expect(seen).toEqual(sortOrder === 'asc' ? ids : [...ids].reverse());
      }
    }
  });

  it('200: hasLoggedIn tells those who signed in from those who did not (USER-18)', async () => {
    const grace = await app.member(admin, 'grace@example.com');
    const all = (await admin.get('/users')).body.length;
    const filtered = async (value: boolean) => (await admin.get(`/users?limit=100&hasLoggedIn=${value}`)).body;
    const yes = await filtered(true);
    expect(emailsOf(yes).sort()).toEqual(['ada@example.com', 'grace@example.com']);
    const no = await filtered(false);
    expect(no.pagination.totalCount).toBe(all - 2);
    expect(no.users.every(({ hasLoggedIn }: Json) => hasLoggedIn === false)).toBe(true);
    await admin.put(`/users/${grace.userId}`, { email: 'grace@example.com', hasLoggedIn: false });
    expect(emailsOf(await filtered(true))).toEqual(['ada@example.com']);
    await app.deleteUser(grace.userId);
  });

  it('200: groupIds finds the members of any of the groups, each once (USER-18)', async () => {
    const { db } = app.services;
    const groups = await db.read.selectFrom('user_groups').select(['id', 'type']).execute();
    const idOf = (type: string) => groups.find((group) => group.type === type)?.id ?? '';
    const [admins, everyone, standard] = [idOf('admin'), idOf('everyone'), idOf('standard')];
    const unknown = 'f'.repeat(24);
    const [, zoe = ''] = (await admin.get('/users')).body.map(({ _id }: Json) => _id);
    await db.transaction((tx) => tx.insertInto('group_members').values({ group_id: standard, user_id: zoe }).execute());
    const total = async (...ids: string[]) => {
      const { body } = await admin.get(`/users?limit=100&groupIds=${ids.join(',')}`);
      expect(body.users).toHaveLength(Math.min(100, body.pagination.totalCount));
      return body.pagination.totalCount;
    };
    const all = (await admin.get('/users')).body.length;
    expect([await total(admins), await total(standard), await total(everyone)]).toEqual([1, 1, all]);
    expect([await total(admins, standard), await total(admins, everyone)]).toEqual([2, all]);
    expect([await total(unknown), await total(unknown, standard)]).toEqual([0, 1]);
    expect([await total(standard.toUpperCase()), await total(standard, standard)]).toEqual([1, 1]);
    expect(await total(...Array.from({ length: 99 }, () => unknown), admins)).toBe(1);
    await db.transaction((tx) =>
      tx.updateTable('user_groups').set({ is_deleted: 1 }).where('id', '=', standard).execute(),
    );
    expect([await total(standard), await total(standard, admins)]).toEqual([0, 1]);
    expect(emailsOf((await admin.get(`/users?groupIds=${admins}&search=ada&hasLoggedIn=true`)).body)).toHaveLength(1);
    expect(emailsOf((await admin.get(`/users?groupIds=${admins}&search=ada&hasLoggedIn=false`)).body)).toEqual([]);
  });

  it('200: a page marks an unverified address as the record alone does, for whoever sees it (ADDRESS-1, ADDRESS-15)', async () => {
    const [grace, viewer] = [
      await app.member(admin, 'marked@example.com', 'Marked Address'),
      await app.member(admin, 'marks-viewer@example.com', 'Viewer'),
    ];
    await grace.patch(`/users/${grace.userId}/email`, { email: 'claimed@example.com' });
    for (const [client, marks] of [
      [viewer, { emailVerified: false }],
      [admin, { emailVerifiedAt: null }],
      [grace, { emailVerifiedAt: null }],
    ] as const) {
      const [listed] = (await client.get('/users?page=1&search=marked')).body.users;
      const whole = (await client.get('/users')).body.find(({ _id }: Json) => _id === grace.userId);
      const one = (await client.get(`/users/${grace.userId}`)).body;
      expect(one).toMatchObject({ email: 'claimed@example.com', ...marks });
      expect([listed, whole]).toEqual([expect.objectContaining(one), one]);
    }
  });

  it('200: an item of a page has what tables of users show (FIT-76)', async () => {
    const { _id } = (await admin.post('/userGroups', { name: 'Shown', type: 'custom' })).body;
    const user = (await admin.post('/users', { fullName: 'Tabled User', email: 'tabled@example.com' })).body;
    await admin.post('/userGroups/add-users', { userIds: [user._id], groupIds: [_id] });
    const [item] = (await admin.get('/users?search=tabled&page=1')).body.users;
    expect(item).toEqual({
      ...user,
      userId: user._id,
      name: 'Tabled User',
      isActive: true,
      role: 'Member',
      groupCount: 1,
      userGroups: [
        { _id: expect.any(String), name: 'everyone', type: 'everyone' },
        { _id, name: 'Shown', type: 'custom' },
      ],
      createdAtTimestamp: Date.parse(user.createdAt),
    });
    const [ada] = (await admin.get('/users?search=lovelace&page=1')).body.users;
    expect(ada).toMatchObject({ role: 'Admin', groupCount: 1 });
    await admin.delete(`/userGroups/${_id}`);
    expect((await admin.get('/users?search=tabled&page=1')).body.users[0]).toMatchObject({ groupCount: 0 });
  });
});
