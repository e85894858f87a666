import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { day, hour } from '../../server/src/base/clock.ts';
import { ensureServerIsBuilt } from '../../server/test/support/server-process.ts';
import { tablesOf } from '../../server/test/support/statement-watch.ts';
import {
  type Client,
  type Json,
  password,
  type TestApp,
  type TokenClient,
} from '../../server/test/support/test-app.ts';
import { dumpOf, imported, type Line, startNow, toLines } from './import-world.ts';

/** Facts about users, tokens and groups that a move must not change. */
const kept: Readonly<Record<string, readonly string[]>> = {
  users: [
    'id',
    'email',
    'full_name',
    'designation',
    'has_logged_in',
    'is_deleted',
    'deleted_by',
    'created_at',
    'updated_at',
  ],
  personal_access_tokens: [
    'id',
    'hash',
    'user_id',
    'name',
    'scopes',
    'created_at',
    'expires_at',
    'last_used_at',
    'revoked_at',
    'revoked_by',
    'revoke_reason',
  ],
  user_groups: ['id', 'name', 'type', 'is_system', 'created_at'],
  group_members: ['group_id', 'user_id'],
  password_credentials: ['user_id', 'password_hash'],
};

function keptOf(app: TestApp): Json {
  const tables = tablesOf(app);
  return Object.fromEntries(
    Object.entries(kept).map(([table, columns]) => {
      const rows = (tables[table] ?? []).filter((row: Json) => !(table === 'user_groups' && row.is_deleted === 1));
      const picked = rows.map((row: Json) => JSON.stringify(columns.map((column) => [column, row[column]])));
      return [table, picked.sort()];
    }),
  );
}

describe('latchkey import dump, of a whole deployment into a store without an organization, beside its server', () => {
  let source: TestApp;
  let target: TestApp;
  let dump: Line[];
  let report: Json;
  let grace: Client;
  const tokens: Record<string, TokenClient> = {};

  beforeAll(async () => {
    ensureServerIsBuilt();
    source = await startNow();
    const admin = await source.setUp();
    grace = await source.member(admin, 'grace@example.com');
    const gone = await source.member(admin, 'gone@example.com', 'Gone Person');
    const { body } = await admin.post('/userGroups', { name: 'Research', type: 'custom' });
    await admin.post('/userGroups/add-users', { userIds: [grace.userId, gone.userId], groupIds: [body._id] });
    tokens['forever'] = await grace.token({
      scopes: ['user:read', 'token:read'],
      expiryDays: 'never',
      name: 'Forever',
    });
    tokens['month'] = await grace.token({ scopes: ['user:read'], expiryDays: 30 });
    tokens['revoked'] = await grace.token({ scopes: ['user:read'] });
    tokens['admin'] = await admin.token();
    tokens['gone'] = await gone.token();
    await grace.delete(`/personal-access-tokens/${tokens['revoked'].tokenId}`, { reason: 'Lost' });
    await source.deleteUser(gone.userId);
    dump = await dumpOf(source);
    target = await startNow();
    report = await imported(target, ['dump'], toLines(dump));
    for (const { credential } of Object.values(tokens))
      target.keepSecret(credential?.replace(/^\w+_(?=eyJ)/, '') ?? '');
  });
  afterAll(async () => {
    await source.close();
    await target.close();
  });
  const call = (name: string, path: string) => target.with(tokens[name]?.credential ?? '').get(path);

  it('0: brings in everything, with its ids, owners, times, members and hashes (CLI-17)', () => {
    expect(keptOf(target)).toEqual(keptOf(source));
    expect(report).toMatchObject({
      dryRun: false,
      changed: true,
      users: { created: 3, invalid: 0 },
      groups: { created: 1, unchanged: 3 },
      tokens: { created: 5, invalid: 0 },
      memberships: 2,
      passwords: 2,
      problems: { count: 0, listed: [] },
    });
  });

  it('200: a token that was issued there authenticates here, as its owner, with its scopes and its expiry (CLI-20, AUTH-25)', async () => {
    const me = await call('forever', `/users/${grace.userId}`);
    expect(me).toMatchObject({ status: 200, body: { email: 'grace@example.com', hasLoggedIn: true } });
    const { body } = await call('forever', '/personal-access-tokens');
    const there = await grace.get('/personal-access-tokens');
    const unused = (items: Json[]) => items.map((item) => ({ ...item, lastUsedAt: null }));
    expect(unused(body.tokens)).toEqual(unused(there.body.tokens));
    expect(body.tokens.map(({ expiresAt }: Json) => expiresAt)).toContain('Never');
    expect((await call('admin', '/personal-access-tokens/admin')).status).toBe(200);
    expect(await call('month', '/personal-access-tokens')).toMatchObject({
      status: 403,
      body: { message: 'Insufficient scope. Required: token:read' },
    });
    expect(
      (await target.with((tokens['month']?.credential ?? '').replace(/^\w+_(?=eyJ)/, '')).get('/org')).status,
    ).toBe(403);
  });

  it('401: one that was revoked stays revoked, and one of a deleted user dead (CLI-20, AUTH-23, AUTH-24)', async () => {
    expect((await call('revoked', '/users')).body.error.code).toBe('TOKEN_REVOKED');
    expect((await call('gone', '/users')).body.error.code).toBe('TOKEN_INVALID');
    const { body } = await call('admin', '/personal-access-tokens/admin?status=revoked');
    expect(body.data).toMatchObject([
      { id: tokens['revoked']?.tokenId, revokedBy: grace.userId, revokeReason: 'Lost' },
    ]);
  });

  it('401: one that expires does so when it would have there (CLI-20, AUTH-22)', async () => {
    target.clock.advance(30 * day - hour);
    expect((await call('month', '/users')).status).toBe(200);
    target.clock.advance(hour + 1_000);
    expect((await call('month', '/users')).body.error.code).toBe('TOKEN_EXPIRED');
    expect((await call('forever', '/users')).status).toBe(200);
    target.clock.advance(-30 * day - 1_000);
  });

  it('200: people sign in with the passwords that they had there (CLI-17)', async () => {
    for (const email of ['grace@example.com', 'ada@example.com']) {
      expect((await target.signInTokens(email, password)).status).toBe(200);
    }
    expect((await target.signInTokens('gone@example.com', password)).status).toBe(401);
    // It is recorded behind the answer.
    await vi.waitUntil(async () => (await target.audit()).at(-1).action === 'sign-in.refused');
  });

  it('tells consumers of the organization and of each active person, once, and the audit log of everything (CLI-19, EVENT-3, EVENT-4)', async () => {
    const events = await target.events();
    expect(events.map(({ event_type }) => event_type)).toEqual(['orgCreated', 'userAdded', 'userAdded']);
    const [, first, second] = events.map(({ payload }) => payload);
    expect(first).toMatchObject({ email: 'ada@example.com', syncAction: 'none' });
    expect(second).toMatchObject({ userId: grace.userId, email: 'grace@example.com', syncAction: 'immediate' });
    const acts = (await target.audit()).filter(({ request_id }) => request_id === 'operator');
    const count = (action: string) => acts.filter((row) => row.action === action).length;
    expect(['org.created', 'user.created', 'group.created', 'token.created'].map(count)).toEqual([1, 3, 1, 5]);
    for (const { details } of acts) expect(details.imported).toBe(true);
  });

  it('0: another run changes nothing and says so, as one JSON object and in other words of it as well (CLI-19)', async () => {
    const unused = () => ({
      ...tablesOf(target),
      personal_access_tokens: keptOf(target)['personal_access_tokens'].map((row: string) =>
        row.replace(/\["last_used_at",[^\]]*\]/, ''),
      ),
    });
    const before = unused();
    const again = await imported(target, ['dump'], toLines(dump));
    expect(again).toMatchObject({ changed: false, users: { created: 0, updated: 0, unchanged: 3 }, memberships: 0 });
    const collections: Record<string, unknown[]> = {};
    for (const [collection, document] of dump) {
      collections[collection] = [...(collections[collection] ?? []), document];
    }
    const plain = JSON.stringify(
      collections,
      (key, value) => value?.$oid ?? value?.$date ?? (key === '__v' ? undefined : value),
    );
    expect(await imported(target, ['dump'], plain)).toMatchObject({ changed: false, tokens: { unchanged: 5 } });
    expect(unused()).toEqual(before);
  });
});
