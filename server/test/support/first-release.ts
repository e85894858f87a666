import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { day } from '../../src/base/clock.ts';
import { hashCredential } from '../../src/base/secret.ts';
import { claimsOf } from './jwt.ts';
import type { StoreConnection } from './store-connection.ts';
import type { Json } from './test-app.ts';
import { TestClock } from './test-clock.ts';

const fixture = (name: string) => readFileSync(new URL(`fixtures/first-release/${name}`, import.meta.url), 'utf8');

/** The statements that made the store of the first release, as its file had them. */
export const firstSchema = fixture('schema.sql');
/** The key file that the first release made, and what it signed with that key. */
export const firstKeys = fixture('signing-keys.json');
const signed = JSON.parse(fixture('credentials.json')) as Readonly<
  Record<'token' | 'accessToken' | 'refreshToken', string>
>;

const nowMs = new TestClock().now();
const beforeMs = nowMs - day;
const signedAtMs = Number(claimsOf(signed.token)['iat']) * 1_000;
/** An id made of a number, in the order of the numbers. */
export const idOf = (number: number) => number.toString(16).padStart(24, '0');
export const orgId = idOf(1);
const groupIds = { admin: idOf(2), everyone: idOf(3), standard: idOf(4) };

/** Names of every kind, and search texts for them. */
export const users = [
  ['Ada Lovelace', 'LOVE'],
  ['Åsa ÅKESSON', 'åkesson'],
  ['Jürgen STRAßE', 'strasse'],
  ['Σίσυφος ΣΊΣΥΦΟΣ', 'σίσυφοσ'],
  ['İpek Işık', 'IŞIK'],
  ['ДОСТОЕВСКИЙ', 'достоевский'],
  ['山田 太郎', '太郎'],
  ['محمد', 'محمد'],
  ['ﬁancé', 'FIANCÉ'],
  ['𐐀𐐁 Deseret', '𐐨𐐩'],
  ['100%_\\', '%_\\'],
] as const;
export const userIds = users.map((_, place) => idOf(100 + place));
export const [adaId = '', asaId = ''] = userIds;
/** The last user: the only one who has never logged in. */
export const newUserId = userIds.at(-1) ?? '';
const goneId = idOf(200);
export const emailOf = (place: number) => (place === 0 ? 'ada@example.com' : `person-${place}@example.com`);

/** Expired tokens in addition: they are migrated in several pages. */
export const manyTokens = 2_500;

/** Three that the first release signed. The others are known by their hash alone, and are any text. */
export const raw = {
  forever: signed.token,
  child: 'eyJ.child.x',
  ofMember: 'eyJ.of-member.x',
  expired: 'eyJ.expired.x',
  revoked: 'eyJ.revoked.x',
  ofGone: 'eyJ.of-gone.x',
  session: signed.accessToken,
  refresh: signed.refreshToken,
  endedSession: 'eyJ.ended.x',
} as const;

/** Fills a store of the first release, with the columns that it had. */
function fill(store: Sqlite.Database, passwordHash: string): void {
  const insert = (table: string, row: Readonly<Record<string, unknown>>) => {
    const names = Object.keys(row);
    const marks = names.map((name) => `@${name}`);
    store.prepare(`INSERT INTO ${table} (${names.join(', ')}) VALUES (${marks.join(', ')})`).run(row);
  };
  const times = { created_at: beforeMs, updated_at: beforeMs };
  insert('schema_migrations', { version: 1, name: 'foundation', applied_at: beforeMs });
  const names = { registered_name: 'Example Ltd', short_name: null, domain: 'example.com', contact_email: emailOf(0) };
  const flags = { account_type: 'business', onboarding_status: 'configured', is_deleted: 0, phone_number: null };
  insert('organizations', { id: orgId, singleton: 1, slug: 'org-1001', ...names, ...flags, ...times });
  const steps = '[{"order":1,"allowedMethods":[{"type":"password"}]}]';
  insert('auth_configs', { org_id: orgId, steps, updated_at: beforeMs });
  for (const [place, [type, id]] of Object.entries(groupIds).entries()) {
    const group = { id, org_id: orgId, slug: `usergroup-${1001 + place}`, name: type, name_key: type, type };
    insert('user_groups', { ...group, is_system: 1, is_deleted: 0, ...times });
  }
  const everyone = [
    ...users.map(([name], place) => [userIds[place], name, emailOf(place)]),
    [goneId, 'GÖNE', 'gone@x.io'],
  ];
  for (const [place, [id, full_name, email]] of everyone.entries()) {
    const has_logged_in = Number(![goneId, newUserId].includes(id ?? ''));
    const state = { has_logged_in, is_deleted: id === goneId ? 1 : 0, deleted_by: id === goneId ? adaId : null };
    const address = place === 1 ? '{"city":"Malmö"}' : null;
    insert('users', { id, org_id: orgId, slug: `user-${1001 + place}`, email, full_name, address, ...state, ...times });
    if (id !== goneId) insert('group_members', { group_id: groupIds.everyone, user_id: id });
  }
  insert('group_members', { group_id: groupIds.admin, user_id: adaId });
  for (const user_id of [adaId, asaId]) {
    insert('password_credentials', { user_id, password_hash: passwordHash, updated_at: beforeMs });
  }
  const token = (number: number, name: keyof typeof raw, more: Readonly<Record<string, unknown>> = {}) =>
    insert('personal_access_tokens', {
      id: idOf(300 + number),
      hash: hashCredential(raw[name]),
      org_id: orgId,
      user_id: adaId,
      name: `Token ÄÖÜ ${name}`,
      scopes: 'org:read user:read token:read token:write token:admin',
      created_at: beforeMs,
      expires_at: null,
      ...more,
    });
  token(1, 'forever', { created_at: signedAtMs, last_used_at: signedAtMs });
  token(2, 'child', { parent_id: idOf(301), expires_at: nowMs + day });
  token(3, 'ofMember', { user_id: asaId });
  token(4, 'expired', { expires_at: nowMs - 1 });
  token(5, 'revoked', { revoked_at: beforeMs, revoked_by: adaId, revoke_reason: 'lost' });
  token(6, 'ofGone', { user_id: goneId });
  for (let number = 0; number < manyTokens; number += 1) {
    const row = { id: idOf(10_000 + number), hash: `of nothing ${number}`, org_id: orgId, user_id: asaId };
    const name = `Nummer Ä${number}`;
    insert('personal_access_tokens', { ...row, name, scopes: 'org:read', created_at: beforeMs, expires_at: nowMs - 1 });
  }
  const session = { org_id: orgId, user_id: adaId, created_at: beforeMs };
  insert('sessions', { id: idOf(401), ...session, ended_at: null, end_reason: null });
  insert('sessions', { id: idOf(402), ...session, ended_at: nowMs - 1, end_reason: 'logout' });
  const sessionToken = (name: keyof typeof raw, session_id: string, kind: 'access' | 'refresh') => {
    const expires_at = name === 'endedSession' ? nowMs + day : Number(claimsOf(raw[name])['exp']) * 1_000;
    insert('session_tokens', { hash: hashCredential(raw[name]), session_id, kind, expires_at });
  };
  sessionToken('session', idOf(401), 'access');
  sessionToken('refresh', idOf(401), 'refresh');
  sessionToken('endedSession', idOf(402), 'access');
  const counters = { org: 1001, user: 1000 + everyone.length, usergroup: 1003, event: 1, audit: 1 };
  for (const [name, value] of Object.entries(counters)) insert('counters', { name, value });
  const payload = JSON.stringify({ orgId, accountType: 'business', registeredName: 'Example Ltd' });
  insert('outbox', {
    sequence: 1,
    id: idOf(501),
    org_id: orgId,
    event_type: 'orgCreated',
    occurred_at: beforeMs,
    payload,
  });
  const audit = { actor_user_id: adaId, actor_token_id: null, subject_id: orgId, network: '::1', request_id: 'r' };
  insert('audit_log', {
    sequence: 1,
    id: idOf(502),
    occurred_at: beforeMs,
    org_id: orgId,
    action: 'org.created',
    ...audit,
    details: '{}',
  });
}

/** Every row of every table. */
export type Rows = Readonly<Record<string, readonly Json[]>>;

export function rowsOf(store: StoreConnection): Rows {
  const names = store.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").pluck().all();
  return Object.fromEntries(names.map((name) => [name, store.prepare(`SELECT * FROM "${name}"`).all()]));
}

/** Puts into a directory what the first release left there; answers the rows of its store. */
export function leaveFirstRelease(dataDir: string, passwordHash: string): Rows {
  writeFileSync(join(dataDir, 'signing-keys.json'), firstKeys, { mode: 0o600 });
  const store = new Sqlite(join(dataDir, 'latchkey.db'));
  store.pragma('journal_mode = WAL');
  store.exec(firstSchema);
  store.transaction(() => fill(store, passwordHash))();
  const rows = rowsOf(store);
  store.close();
  return rows;
}
