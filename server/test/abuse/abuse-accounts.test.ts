import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { addressOf } from '../../src/http/endpoint.ts';
import { isStrict } from '../../src/http/schemas.ts';
import { routes } from '../../src/routes.gen.ts';
import { MailServer } from '../support/mail-server.ts';
import { rowsOf, secondConnection } from '../support/second-connection.ts';
import { neutral } from '../support/sign-in.ts';
import { type Client, type Json, TestApp, type TestResponse } from '../support/test-app.ts';
import {
  jsonRoutes,
  newPassword,
  sendWith,
  type ValidRequest,
  validBody,
  type World,
} from '../support/valid-requests.ts';

const evilId = 'e'.repeat(24);
const memberEmail = 'grace@example.com';

/** Fields that no caller may set, with the names of the API and those of the store. */
const evil = {
  _id: evilId,
  id: evilId,
  orgId: evilId,
  userId: evilId,
  tokenId: evilId,
  deletedBy: evilId,
  deletedByUser: evilId,
  slug: 'evil-slug',
  role: 'admin',
  roles: ['admin'],
  groups: ['admin'],
  groupIds: [evilId],
  users: [evilId],
  isDeleted: true,
  isAdmin: true,
  isSystem: true,
  type: 'admin',
  sequence: 1,
  scope: 'org:admin',
  password: 'Evil-Horse-77',
  passwordHash: 'evil-hash',
  hash: 'evil-hash',
  accessToken: 'evil-token',
  createdAt: '1970-01-01T00:00:00.000Z',
  updatedAt: 0,
  expiresAt: 'Never',
  lastUsedAt: 0,
  exp: 9e9,
  accountType: 'individual',
  onBoardingStatus: 'configured',
  domain: 'evil.example',
  syncAction: 'none',
  recovery_email: 'evil@evil.example',
  recoveryEmail: 'evil@evil.example',
  deleted_by: evilId,
  org_id: evilId,
  is_deleted: 1,
  has_logged_in: 0,
  account_type: 'individual',
  onboarding_status: 'configured',
  singleton: 2,
  created_at: 0,
  name_key: 'evil-key',
  revoked_at: 1,
  parent_id: evilId,
  user_id: evilId,
  steps: [],
};

let mails: MailServer;
let app: TestApp;
let admin: Client;
let member: Client;
let world: World;

beforeAll(async () => {
  mails = await MailServer.start();
  app = await TestApp.start({ SMTP_URL: mails.url });
  admin = await app.setUp();
  member = await app.member(admin, memberEmail);
  world = { app, admin, member, memberEmail };
});
afterAll(async () => {
  await app.close();
  await mails.stop();
});

/** The rows of a table, by what tells them apart. */
function table(name: string, key = 'id'): ReadonlyMap<string, Json> {
  const store = secondConnection(app);
  const rows = rowsOf(store, name);
  store.close();
  return new Map(rows.map((row) => [row[key], row]));
}

/** Returns the data of users and organization that only the service itself decides. */
function governed(): Json {
  const users = [...table('users').values()].sort((one, other) => (one.id < other.id ? -1 : 1));
  const userList = users.map((user) => {
    const { id, org_id, slug, recovery_email, has_logged_in, signed_in_at, is_deleted, deleted_by, created_at } = user;
    return { id, org_id, slug, recovery_email, has_logged_in, signed_in_at, is_deleted, deleted_by, created_at };
  });
  const [organization] = [...table('organizations').values()];
  const { short_name: _, registered_name: __, onboarding_status: ___, updated_at: ____, ...rest } = organization;
  const kept = ['user_groups', 'auth_configs', 'password_credentials', 'pictures'];
  const keys = ['id', 'org_id', 'user_id', 'owner_id'];
  const tables = kept.map((name, place) => {
    const rows = [...table(name, keys[place]).values()];
    // Groups that users create and delete; the fields that no caller may set are checked where that is tried.
    const own = rows.filter((row) => row.is_system !== 0);
    // Setting the same steps again is a change, too.
    return name === 'auth_configs' ? own.map((row) => ({ ...row, updated_at: null, set_by: null })) : own;
  });
  const memberships = secondConnection(app);
  const members = memberships
    .prepare(
      'SELECT m.* FROM group_members m JOIN user_groups g ON g.id = m.group_id WHERE g.is_system = 1 ORDER BY 1, 2',
    )
    .all();
  memberships.close();
  return { users: userList, organization: rest, tables, members };
}

/**
 * Returns whether a request that sets a password has set the one in its body; takes that password out of the states.
 */
async function hasSetPassword({ setsPasswordOf, caller }: ValidRequest, states: Json[]): Promise<boolean> {
  if (setsPasswordOf === undefined) return true;
  for (const state of states) {
    state.tables = state.tables.map((rows: Json[]) => rows.filter(({ user_id }) => user_id !== caller.userId));
  }
  return (await app.signInTokens(setsPasswordOf, newPassword)).status === 200;
}

describe('A2: what a caller may not set is never set', () => {
  /** Strict only without a connector backend, which may know more keys. Rule: FIT-72. */
  const ofTeams = ['POST /teams', 'PUT /teams/:id'];
  const isStrictRoute = ([name]: (typeof jsonRoutes)[number]) =>
    ofTeams.includes(name) ||
    routes.some((one) => name === `${one.method} ${addressOf(one).replace('/api/v1', '')}` && isStrict(one.body));

  it.each(jsonRoutes.filter(isStrictRoute))('400: %s (CRED-2, FIT-72)', async (name, make) => {
    const request = await make(world);
    const before = governed();
    const others = Object.entries(evil).filter(([key]) => !(key in request.body));
    const { status } = await sendWith(name, request, JSON.stringify(Object.fromEntries(others)).slice(1, -1));
    expect([status, governed()]).toEqual([400, before]);
  });

  it.each(jsonRoutes.filter((route) => !isStrictRoute(route)))('2xx: %s', async (name, make) => {
    const request = await make(world);
    const before = governed();
    const others = Object.entries(evil).filter(([key]) => !(key in request.body));
    const { status, text } = await sendWith(name, request, JSON.stringify(Object.fromEntries(others)).slice(1, -1));
    expect([200, 201]).toContain(status);
    expect(text).not.toMatch(/evil|e{24}|1970/i);
    const after = governed();
    const isNew = ({ id }: Json) => before.users.every((known: Json) => known.id !== id);
    const state = { recovery_email: null, has_logged_in: 0, signed_in_at: null, is_deleted: 0, deleted_by: null };
    for (const made of after.users.filter(isNew)) {
      const { id, slug } = made;
      expect(made).toEqual({ ...before.users[0], ...state, id, slug });
      expect([id === evilId, slug]).toEqual([false, expect.stringMatching(/^user-\d+$/)]);
    }
    const newIds = after.users.filter(isNew).map(({ id }: Json) => id);
    expect(newIds).toHaveLength(['POST /users', 'POST /users/bulk/invite'].includes(name) ? 1 : 0);
    after.users = after.users.filter((user: Json) => !isNew(user));
    after.members = after.members.filter(({ user_id }: Json) => !newIds.includes(user_id));
    expect(await hasSetPassword(request, [before, after])).toBe(true);
    const users = [before, after].map((one) => one.users.find(({ id }: Json) => id === request.caller.userId));
    const proved = request.verifiesAddress ? users : [];
    expect(proved.map(({ recovery_email }) => typeof recovery_email)).toEqual(
      proved.map((_, place) => ['string', 'object'][place]),
    );
    for (const user of proved) user.recovery_email = null;
    expect(after).toEqual(before);
    const ofPeople = [...table('user_groups').values()].filter((group) => group.is_system === 0);
    const orgId = before.organization.id;
    for (const group of ofPeople) expect(group).toMatchObject({ org_id: orgId, type: 'custom', is_deleted: 0 });
    for (const team of table('teams').values()) expect(team.org_id).toBe(orgId);
    const names = ['users', 'organizations', 'personal_access_tokens', 'outbox', 'audit_log', 'user_groups', 'teams'];
    names.push('one_time_links', 'service_clients', 'service_tokens', 'sessions', 'external_identities');
    for (const stored of names) expect(JSON.stringify([...table(stored).values()])).not.toMatch(/evil|e{24}/i);
  });

  it.each(['POST /users/:id/restore', 'DELETE /users/:id'])('200: %s, which takes no body at all', async (name) => {
    const { body: user } = await admin.post('/users', { fullName: 'X', email: `${name.length}@example.com` });
    if (name.startsWith('POST')) await admin.delete(`/users/${user._id}`);
    const [method = '', path = ''] = name.split(' ');
    const { status } = await admin.call(method, path.replace(':id', user._id), { body: { ...evil, reason: 'x' } });
    expect(status).toBe(200);
    const row = table('users').get(user._id);
    expect(row).toMatchObject({ slug: user.slug, org_id: user.orgId, recovery_email: null, email: user.email });
    expect(row.deleted_by).toBe(name.startsWith('POST') ? null : admin.userId);
  });

  it.each(jsonRoutes)('400: names that reach for prototypes, at any depth: %s (HTTP-15)', async (name, make) => {
    for (const key of ['__proto__', 'constructor', 'prototype', '\\u005f_proto__']) {
      const request = await make(world);
      const before = governed();
      const deep = `"address":{"${key}":{"isAdmin":true}}`;
      for (const more of [`"${key}":{"isAdmin":true}`, `"${key}":null`, deep, `"x":[{"${key}":1}]`]) {
        const { status, body } = await sendWith(name, request, more);
        const isOAuth = name.includes('/oauth2/');
        const said = isOAuth ? body.error : body.error?.code;
        expect([more, status, said]).toEqual([more, 400, isOAuth ? 'invalid_request' : 'VALIDATION_ERROR']);
      }
      expect(governed()).toEqual(before);
    }
    expect(({} as Json).isAdmin).toBeUndefined();
  });

  it('are all routes that take JSON', () => {
    expect(jsonRoutes.length).toBeGreaterThanOrEqual(17);
  });
});

describe('A3: ids on every route that has one', () => {
  const withId = routes
    .filter(({ path }) => path.includes(':'))
    .map((route) => [`${route.method} ${addressOf(route).replace('/api/v1', '')}`, route.policy] as const);
  const bad = ['a'.repeat(23), 'a'.repeat(25), 'a'.repeat(600), '%00', `${'a'.repeat(24)}%00`, `${'a'.repeat(23)}g`];
  const worse = ['..%2f..%2fusers', encodeURIComponent('１'.repeat(24)), `%20${'a'.repeat(24)}`, "'%20OR%201=1--"];
  /** Calls with the id in each place that takes one; what stands in the others is there. */
  const call = async (name: string, client: Client, id: string): Promise<TestResponse[]> => {
    const [method = '', path = ''] = name.split(' ');
    const body = await validBody(name, world);
    const { sessions } = (await member.get('/userAccount/sessions')).body;
    const known: Json = { ':id': member.userId, ':sessionId': sessions[0].id };
    const places = path.match(/:\w+/g) ?? [];
    const paths = places.map((place) => path.replace(/:\w+/g, (one) => (one === place ? id : known[one])));
    return Promise.all(paths.map((one) => client.call(method, one, body === undefined ? {} : { body })));
  };

  it.each(withId)('400 for who may, and nothing learned by who may not: %s (HTTP-4, HTTP-19)', async (name, policy) => {
    const entitled = policy.who === 'service' ? app.service() : admin;
    for (const id of [...bad, ...worse]) {
      const responses = [
        await call(name, entitled, id),
        await call(name, app.anonymous, id),
        await call(name, member, id),
      ];
      const refused = policy.who === 'service' ? 401 : 403;
      const isOpenToMembers = policy.who === 'member' || 'adminFirst' in policy;
      const statuses = responses.map((some) => some.map(({ status }) => status));
      const expected = [400, 401, isOpenToMembers ? 400 : refused];
      expect([id, ...statuses]).toEqual([id, ...expected.map((status) => statuses[0]?.map(() => status))]);
    }
  });

  it.each(withId)(
    '404 for ids of other things, of someone deleted and of nothing, all the same: %s (ERR-18)',
    async (name, policy) => {
      const gone = await admin.post('/users', { fullName: 'Gone', email: `${name.replace(/\W/g, '')}@example.com` });
      await admin.delete(`/users/${gone.body._id}`);
      const first = (stored: string) => [...table(stored).keys()][0] ?? '';
      const ids = ['f'.repeat(24), first('sessions'), first('organizations'), first('audit_log')];
      ids.push(name.includes(':groupId') ? member.userId : first('user_groups'));
      if (name.includes(':tokenId')) ids.push(member.userId, gone.body._id);
      else ids.push((await member.token()).tokenId);
      const findsDeleted = name.endsWith('/restore') || name.includes('/internal/');
      if (name.includes(':id') && !findsDeleted) ids.push(gone.body._id);
      // The first of the sessions is the administrator's own.
      const user = name.includes('/userAccount/sessions/') ? member : admin;
      const client = policy.who === 'service' ? app.service() : user;
      const responses: TestResponse[] = [];
      for (const id of ids)
        responses.push(...(await call(name, client, id)), ...(await call(name, client, id.toUpperCase())));
      expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([404]));
      expect(new Set(responses.map((response) => JSON.stringify(neutral(response)))).size).toBe(1);
    },
  );
});
