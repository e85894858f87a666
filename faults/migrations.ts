import { createHash, randomInt } from 'node:crypto';
import { chmodSync, copyFileSync, cpSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import type Sqlite from 'better-sqlite3';
import type { Json } from '../harness/api-client.ts';
import { messageOf } from '../harness/command-line.ts';
import { removeFolder, temporaryFolder } from '../harness/processes.ts';
import { inStore } from './embedded-store.ts';
import type { Given } from './rows.ts';
import { type LoggedEvent, Service } from './service.ts';

const fixture = (name: string) =>
  fileURLToPath(new URL(`../server/test/support/fixtures/first-release/${name}`, import.meta.url));
const idOf = (number: number) => number.toString(16).padStart(24, '0');
const orgId = idOf(1);
const adminId = idOf(100);
/** Enough that bringing it up to date takes a while. */
const many = { users: 3_000, tokens: 12_000 };
const atMs = Date.UTC(2026, 10, 1);

interface Sizes {
  readonly users: number;
  readonly tokens: number;
}

/** A data directory, and a token that its store knows. */
interface Old {
  readonly dataDir: string;
  readonly token: string;
}

/** A data directory as the first release left it, with so many people and tokens, and a token that this release issued. */
export function oldStore(sizes: Sizes): Old {
  const dataDir = join(temporaryFolder(), 'data');
  mkdirSync(dataDir, { mode: 0o700 });
  copyFileSync(fixture('signing-keys.json'), join(dataDir, 'signing-keys.json'));
  chmodSync(join(dataDir, 'signing-keys.json'), 0o600);
  const { token } = JSON.parse(readFileSync(fixture('credentials.json'), 'utf8'));
  inStore(dataDir, (store) => {
    store.pragma('journal_mode = WAL');
    store.exec(readFileSync(fixture('schema.sql'), 'utf8'));
    store.transaction(() => fill(store, { token, ...sizes }))();
  });
  return { dataDir, token };
}

function inserter(store: Sqlite.Database) {
  const prepared = new Map<string, Sqlite.Statement>();
  return (table: string, row: Readonly<Record<string, string | number | null>>) => {
    const names = Object.keys(row);
    const sql = `INSERT INTO ${table} (${names.join(', ')}) VALUES (${names.map((name) => `@${name}`).join(', ')})`;
    const statement = prepared.get(sql) ?? store.prepare(sql);
    prepared.set(sql, statement);
    statement.run(row);
  };
}

function fill(store: Sqlite.Database, { token, users, tokens }: Sizes & { readonly token: string }): void {
  const insert = inserter(store);
  const times = { created_at: atMs, updated_at: atMs };
  insert('schema_migrations', { version: 1, name: 'foundation', applied_at: atMs });
  const names = { slug: 'org-1001', registered_name: 'Example Ltd', domain: 'example.com' };
  const account = { account_type: 'business', contact_email: 'ada@example.com', onboarding_status: 'configured' };
  insert('organizations', { id: orgId, singleton: 1, ...names, ...account, is_deleted: 0, ...times });
  const steps = '[{"order":1,"allowedMethods":[{"type":"password"}]}]';
  insert('auth_configs', { org_id: orgId, steps, updated_at: atMs });
  for (const [place, type] of ['admin', 'everyone', 'standard'].entries()) {
    const group = { id: idOf(2 + place), org_id: orgId, slug: `usergroup-${1001 + place}`, name: type, name_key: type };
    insert('user_groups', { ...group, type, is_system: 1, is_deleted: 0, ...times });
  }
  for (let number = 0; number < users; number += 1) {
    const [id, email] = [idOf(100 + number), number === 0 ? 'ada@example.com' : `old-${number}@example.com`];
    const names = { slug: `user-${1001 + number}`, email, full_name: `Old Person ${number}` };
    insert('users', { id, org_id: orgId, ...names, has_logged_in: 1, is_deleted: 0, ...times });
    insert('group_members', { group_id: idOf(3), user_id: id });
    const payload = {
      orgId,
      userId: id,
      email,
      fullName: names.full_name,
      syncAction: number === 0 ? 'none' : 'immediate',
    };
    const event = {
      sequence: number + 2,
      id: idOf(50_000 + number),
      org_id: orgId,
      event_type: 'userAdded',
      occurred_at: atMs,
    };
    insert('outbox', { ...event, payload: JSON.stringify(payload) });
  }
  insert('group_members', { group_id: idOf(2), user_id: adminId });
  const created = JSON.stringify({ orgId, accountType: 'business', registeredName: 'Example Ltd' });
  const first = { sequence: 1, id: idOf(49_999), org_id: orgId, event_type: 'orgCreated', occurred_at: atMs };
  insert('outbox', { ...first, payload: created });
  const scopes = 'org:read org:admin user:read';
  for (let number = 0; number <= tokens; number += 1) {
    const hash = number === 0 ? createHash('sha256').update(token).digest('base64url') : `of nothing ${number}`;
    const row = { id: idOf(100_000 + number), hash, org_id: orgId, user_id: adminId, name: `Token ${number}`, scopes };
    insert('personal_access_tokens', { ...row, created_at: atMs, expires_at: null });
  }
  for (let number = 1; number <= tokens; number += 1) {
    const subject = { actor_user_id: adminId, subject_id: idOf(100_000 + number), network: '::1', request_id: 'r' };
    const record = {
      sequence: number,
      id: idOf(200_000 + number),
      occurred_at: atMs,
      org_id: orgId,
      action: 'token.created',
    };
    insert('audit_log', { ...record, ...subject, details: '{}' });
  }
  const counters = { org: 1001, user: 1000 + users, usergroup: 1003, event: users + 1, audit: tokens };
  for (const [name, value] of Object.entries(counters)) insert('counters', { name, value });
}

const pairsOf = (users: Json) => users.map(({ _id, email }: Json) => [_id, email]);

/** The steps that a store has taken, in order. */
function stepsIn(store: Sqlite.Database): readonly number[] {
  return store.prepare<[], number>('SELECT version FROM schema_migrations ORDER BY version').pluck().all();
}

/** What a store holds once it is up to date. */
interface Before {
  readonly tookMs: number;
  readonly events: readonly LoggedEvent[];
  readonly users: unknown;
  readonly steps: readonly number[];
}

/** What was there before and is there no more, or otherwise. */
async function changed(service: Service, token: string, before: Before): Promise<readonly string[]> {
  const faults: string[] = [];
  const events = await service.events();
  if (JSON.stringify(events) !== JSON.stringify(before.events)) faults.push('the events are others');
  const { body: users } = await service.ask('GET', '/users', { token });
  if (JSON.stringify(pairsOf(users)) !== JSON.stringify(before.users)) {
    faults.push('the users are others');
  }
  const ask = (store: Sqlite.Database) => {
    const count = (table: string) => Number(store.prepare(`SELECT count(*) FROM ${table}`).pluck().get());
    return { kept: count('personal_access_tokens'), records: count('audit_log'), steps: stepsIn(store) };
  };
  const { kept, records, steps } = inStore(service.dataDir, ask, { readonly: true });
  if (kept !== many.tokens + 1) faults.push(`there are ${kept} tokens`);
  if (records < many.tokens) faults.push(`there are ${records} audit records`);
  if (String(steps) !== String(before.steps)) faults.push(`steps ${steps.join(', ')} were taken`);
  return faults;
}

async function bringUpToDate(entry: string, old: Old): Promise<Before> {
  const service = new Service({ entry, dataDir: old.dataDir });
  const startedMs = performance.now();
  await service.start();
  const tookMs = performance.now() - startedMs;
  const events = await service.events();
  const { body: users } = await service.ask('GET', '/users', { token: old.token });
  await service.stop();
  const steps = inStore(old.dataDir, stepsIn);
  return { tookMs, events, users: pairsOf(users), steps };
}

/** D1: a service is killed while it brings the store of the first release up to date; the next one goes on. */
export async function killMigration({ kills, entry, tell }: Given & { readonly kills: number }) {
  const old = oldStore(many);
  const copyOf = () => {
    const dataDir = join(temporaryFolder(), 'data');
    cpSync(old.dataDir, dataDir, { recursive: true });
    return { ...old, dataDir };
  };
  const before = await bringUpToDate(entry, copyOf());
  const faults = before.events.length === many.users + 1 ? [] : [`there are ${before.events.length} events`];
  let halfway = 0;
  for (let kill = 1; kill <= kills; kill += 1) {
    const { dataDir, token } = copyOf();
    const service = new Service({ entry, dataDir });
    service.spawn();
    // A process takes a while to get there at all.
    await sleep(before.tookMs * (0.2 + 0.8 * Math.random()) + randomInt(20));
    const wasThrough = service.url !== '';
    await service.kill();
    const steps = inStore(dataDir, stepsIn).length;
    if (!wasThrough && steps < before.steps.length) halfway += 1;
    const found = await service.start().then(
      () => changed(service, token, before),
      (error: unknown) => [messageOf(error)],
    );
    faults.push(...found.map((fault) => `kill ${kill} after step ${steps}: ${fault}`));
    await service.kill();
    removeFolder(join(dataDir, '..'));
  }
  tell(`R1: killed ${kills} times in a migration, ${halfway} times before its end`);
  return { kills, halfway, events: before.events.length, lost: faults, invented: [], disordered: [] };
}
