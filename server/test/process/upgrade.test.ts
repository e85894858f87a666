import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { createLocalJWKSet, jwtVerify } from 'jose';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { passwordHasher } from '../../src/access/passwords.ts';
import { up as foundation } from '../../src/db/schema/migrations/0001-foundation.ts';
import { openSqlite } from '../../src/db/sqlite/sqlite.ts';
import { foldCase } from '../../src/text/plain-text.ts';
import {
  adaId,
  asaId,
  emailOf,
  firstKeys,
  firstSchema,
  idOf,
  leaveFirstRelease,
  manyTokens,
  newUserId,
  orgId,
  type Rows,
  raw,
  rowsOf,
  userIds,
  users,
} from '../support/first-release.ts';
import { bareJwt } from '../support/jwt.ts';
import { type Client, type Json, password, TestApp } from '../support/test-app.ts';
import { TestClock } from '../support/test-clock.ts';

const clock = new TestClock();

/** The statements that made a store, spelled alike. */
const statements = (schema: string) => schema.split(';\n').filter((statement) => statement !== '');

describe('the first step', () => {
  it('still makes the store of the first release, and no other (STORE-9)', async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'latchkey-test-'));
    const db = openSqlite(dataDir);
    await db.transaction(foundation);
    await db.close();
    const store = new Sqlite(join(dataDir, 'latchkey.db'));
    const made = store.prepare('SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid').pluck().all();
    store.close();
    rmSync(dataDir, { recursive: true });
    const [steps, ...tables] = statements(firstSchema);
    expect(steps).toContain('CREATE TABLE "schema_migrations"');
    expect(tables.length).toBeGreaterThan(20);
    expect(made).toEqual(tables);
  });
});

describe('a data directory of the first release (STORE-9, AUTH-31, AUTH-34)', () => {
  let app: TestApp;
  let before: Rows;
  let after: Rows;
  let ada: Client;

  beforeAll(async () => {
    const dataDir = mkdtempSync(join(tmpdir(), 'latchkey-test-'));
    const { hash } = await passwordHasher();
    before = leaveFirstRelease(dataDir, await hash(password));
    app = await TestApp.start({ DATA_DIR: dataDir }, clock);
    const store = new Sqlite(join(app.dataDir, 'latchkey.db'));
    after = rowsOf(store);
    store.close();
    ada = app.with(raw.session);
  });
  afterAll(() => app.close());

  it('opens with every row and every value that it had', () => {
    expect(Object.keys(before).length).toBeGreaterThan(12);
    for (const [table, rows] of Object.entries(before)) {
      if (table === 'schema_migrations') continue;
      expect([table, after[table]]).toEqual([table, rows.map((row) => expect.objectContaining(row))]);
    }
    expect(after['schema_migrations']?.[0]).toEqual(before['schema_migrations']?.[0]);
  });

  it('has a key for every name, deleted people and dead tokens included', () => {
    expect(after['users']).toHaveLength(users.length + 1);
    for (const { full_name, name_key } of after['users'] ?? []) expect(name_key).toBe(foldCase(full_name));
    expect(after['personal_access_tokens']).toHaveLength(6 + manyTokens);
    for (const { name, name_key } of after['personal_access_tokens'] ?? []) expect(name_key).toBe(foldCase(name));
  });

  it('anyone who has logged in before has signed in, and no one else (USER-31)', () => {
    const stored = after['users'] ?? [];
    const known = stored.filter(({ has_logged_in }) => has_logged_in === 1);
    expect([known.length, stored.length]).toEqual([users.length - 1, users.length + 1]);
    for (const { signed_in_at, updated_at } of known) expect(signed_in_at).toBe(updated_at);
    for (const user of stored.filter((one) => !known.includes(one))) expect(user.signed_in_at).toBeNull();
  });

  it('200: a link to copy is for anyone who has never been in, of before too (INVITE-26)', async () => {
    const link = async (id: string) => (await ada.post(`/users/${id}/invite-link`)).status;
    expect([await link(newUserId), await link(asaId), await link(userIds[2] ?? '')]).toEqual([201, 400, 400]);
    const { body } = await ada.get('/users/invitations');
    expect(body.invitations.map(({ userId }: Json) => userId)).toEqual([newUserId]);
  });

  it('200: tokens and sessions of before go on, with and without the display prefix', async () => {
    for (const credential of [raw.session, raw.forever, `lkpat_${raw.forever}`, raw.child, raw.ofMember]) {
      const response = await app.with(credential).get('/org');
      expect(response).toMatchObject({ status: 200, body: { _id: orgId, slug: 'org-1001', shortName: 'Example Ltd' } });
    }
    expect((await ada.get('/personal-access-tokens')).body.tokens.map(({ id }: Json) => id)).toEqual([
      idOf(302),
      idOf(301),
    ]);
  });

  it('200: the key of before is the one key, verifies what it signed, and signs what is new (AUTH-34, AUTH-35)', async () => {
    const { body: published } = await app.anonymous.get('//.well-known/jwks.json');
    expect(published.keys.map(({ kid }: Json) => kid)).toEqual([JSON.parse(firstKeys).keys[0].kid]);
    const keys = createLocalJWKSet(published);
    const made = await ada.token({ scopes: ['org:read'], expiryDays: 'never' });
    for (const token of [raw.session, raw.forever, bareJwt(made.credential ?? '')]) {
      const { payload } = await jwtVerify(token, keys, { currentDate: new Date(clock.now()) });
      expect(payload).toMatchObject({ userId: adaId, orgId });
    }
    expect((await made.get('/org')).status).toBe(200);
    expect((await ada.delete(`/personal-access-tokens/${made.tokenId}`)).status).toBe(200);
    expect(readFileSync(join(app.dataDir, 'signing-keys.json'), 'utf8')).toBe(firstKeys);
  });

  it('200: a session of before is listed, from no one knows where, and active since it began (AUTH-53)', async () => {
    const { status, body } = await ada.get('/userAccount/sessions');
    expect(status).toBe(200);
    const own = body.sessions.find(({ isCurrent }: Json) => isCurrent);
    expect(own).toMatchObject({ network: null, lastActiveAt: own.createdAt });
    expect((await app.with(raw.ofMember).get('/userAccount/sessions')).status).toBe(403);
  });

  it('200: people sign in with a password alone, as before, until that is changed (AUTH-45)', async () => {
    const { body } = await ada.get('/orgAuthConfig/authMethods');
    expect(body).toEqual({ authMethods: [{ order: 1, allowedMethods: [{ type: 'password' }] }] });
  });

  it.each([
    ['expired', 'TOKEN_EXPIRED'],
    ['revoked', 'TOKEN_REVOKED'],
    ['ofGone', 'TOKEN_INVALID'],
    ['endedSession', 'SESSION_EXPIRED'],
    ['refresh', 'TOKEN_INVALID'],
  ] as const)('401: what had ended has ended: %s', async (name, code) => {
    const { status, body } = await app.with(raw[name]).get('/org');
    expect([status, body.error.code]).toEqual([401, code]);
  });

  it('200: everyone is listed, in order of creation', async () => {
    const { body } = await ada.get('/users');
    expect(body.map(({ fullName }: Json) => fullName)).toEqual(users.map(([name]) => name));
    expect(body[1]).toMatchObject({ _id: asaId, address: { city: 'Malmö' }, hasLoggedIn: true });
  });

  it.each(users.map(([name, search], place) => [name, search, place] as const))(
    '200: %s is found by %s (USER-16)',
    async (...[, search, place]) => {
      const { body } = await ada.get(`/users?search=${encodeURIComponent(search)}`);
      expect(body.users.map(({ _id }: Json) => _id)).toEqual([userIds[place]]);
    },
  );

  it('200: an earlier token is found by its name in other letters (PAT-22)', async () => {
    const { body } = await ada.get(`/personal-access-tokens/admin?search=${encodeURIComponent('token äöü forever')}`);
    expect(body.data.map(({ id }: Json) => id)).toEqual([idOf(301)]);
  });

  it('the lists are sorted by name, as for people who came later (USER-17)', async () => {
    await ada.post('/users', { fullName: 'åsa b', email: 'asa-b@example.com' });
    const { body } = await ada.get('/users?sortBy=fullName&limit=100');
    const keys = body.users.map(({ fullName }: Json) => Buffer.from(foldCase(fullName)));
    expect(keys).toEqual([...keys].sort(Buffer.compare));
    expect(body.users.map(({ slug }: Json) => slug)).toContain(`user-${1002 + users.length}`);
  });

  it('has the tables of later features, which are empty, and says of a session only what is known of it', () => {
    const later = [
      'sign_in_progress',
      'one_time_codes',
      'external_identities',
      'sign_in_tickets',
      'sign_in_ends',
      'known_networks',
      'wrong_codes',
      'mailed_codes',
      'idempotency_keys',
    ];
    for (const table of [...later, 'service_clients', 'service_tokens'])
      expect([table, after[table]]).toEqual([table, []]);
    expect(after['sessions']).toHaveLength(before['sessions']?.length ?? 0);
    for (const session of after['sessions'] ?? []) expect(session).toMatchObject({ network: null, active_at: null });
  });

  it('200: a session of before is listed, and can be ended by itself (AUTH-53, AUTH-54)', async () => {
    const { status, body } = await ada.get('/userAccount/sessions');
    expect(status).toBe(200);
    expect(body.sessions.map(({ id }: Json) => id)).toEqual([idOf(401)]);
    const { body: begun } = await app.signInTokens('ada@example.com');
    const other = app.with(begun.accessToken);
    const listed: Json[] = (await ada.get('/userAccount/sessions')).body.sessions;
    const { id } = listed.find((session) => session.id !== idOf(401));
    expect((await ada.delete(`/userAccount/sessions/${id}`)).status).toBeLessThan(300);
    expect((await other.get('/org')).status).toBe(401);
  });

  it('200: services can be registered, and get tokens (SERVICE-7, SERVICE-11)', async () => {
    const { body } = await ada.post('/service-clients', { name: 'relay', scopes: ['FETCH_CONFIG'] });
    const { clientId: client_id, clientSecret: client_secret } = body;
    const grant = { grant_type: 'client_credentials', client_id, client_secret };
    const issued = await app.anonymous.post('/oauth2/token', grant);
    expect((await app.with(issued.body.access_token).post('/users/updateAppConfig')).status).toBe(200);
  });

  it('200: people sign in with their password, and refresh what they have', async () => {
    expect((await app.signInTokens('ada@example.com')).status).toBe(200);
    expect((await app.signInTokens(emailOf(1))).status).toBe(200);
    expect((await app.with(raw.refresh).post('/userAccount/refresh/token')).status).toBe(200);
  });

  it('events and audit rows go on after the last number of before (EVENT-10)', async () => {
    const events = await app.events();
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, place) => place + 1));
    expect(events[0]).toMatchObject({ id: idOf(501), event_type: 'orgCreated' });
    expect(events.at(-1).event_type).toBe('userAdded');
  });

  it('401: revoking a token of before takes its child of before with it (SCOPE-24)', async () => {
    expect((await ada.delete(`/personal-access-tokens/${idOf(301)}`)).status).toBe(200);
    for (const credential of [raw.forever, raw.child])
      expect((await app.with(credential).get('/org')).status).toBe(401);
  });

  it('a restart changes nothing more', async () => {
    const { dataDir } = app;
    await app.stop();
    const stored = () => {
      const store = new Sqlite(join(dataDir, 'latchkey.db'));
      const rows = rowsOf(store);
      store.close();
      return rows;
    };
    const stopped = stored();
    app = await TestApp.start({ DATA_DIR: dataDir }, clock);
    expect(stored()).toEqual(stopped);
  });
});
