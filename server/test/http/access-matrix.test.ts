import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { catalogue } from '../../src/access/scopes.ts';
import type { AnyEndpoint } from '../../src/http/endpoint.ts';
import { addressOf } from '../../src/http/endpoint.ts';
import { routes } from '../../src/routes.gen.ts';
import { MailServer } from '../support/mail-server.ts';
import { type Client, type Json, TestApp } from '../support/test-app.ts';

const unknownId = '0123456789abcdef01234567';
const memberEmail = 'grace@example.com';

const columns = [
  'Operation',
  'nobody',
  "member's session",
  "administrator's session",
  "member's token, by its only scope",
  "administrator's token, by its only scope",
  'member on their own id: session / token, by its only scope',
  "service's token, by its only scope",
  'removed owner: session / token',
];
const serviceScopes = ['USER_LOOKUP', 'FETCH_CONFIG', 'EVENTS_READ', 'TOKEN_INTROSPECT'];

/** The address to call, from the root, with an id in each of its places. */
function targetOf(endpoint: AnyEndpoint, id: string): string {
  return `/${addressOf(endpoint).replace(/:\w+/g, id)}`;
}

/** Statuses by scope as `scopes → status`, the most common status last, as `else`, or as `any` where it is the only one. */
function summary(statuses: ReadonlyMap<string, readonly string[]>): string {
  const groups = [...statuses].sort(([, a], [, b]) => a.length - b.length);
  const common = groups.length === 1 ? 'any' : 'else';
  return groups
    .map(([status, names], place) => `${place < groups.length - 1 ? names.join(' ') : common} → ${status}`)
    .join(', ');
}

describe('access matrix', () => {
  let mails: MailServer;
  let app: TestApp;
  let admin: Client;
  let member: Client;
  let removed: Client;
  let removedsToken: Client;
  const tokens = { ofMember: new Map<string, Client>(), ofAdmin: new Map<string, Client>() };
  const services = new Map<string, Client>();

  beforeAll(async () => {
    mails = await MailServer.start();
    app = await TestApp.start({ SMTP_URL: mails.url });
    admin = await app.setUp();
    member = await app.member(admin, memberEmail);
    for (const { name } of catalogue) {
      const scopes = [name];
      tokens.ofMember.set(name, await member.token({ scopes }));
      tokens.ofAdmin.set(name, await admin.token({ scopes }));
    }
    for (const name of serviceScopes) services.set(name, app.service([name]));
    removed = await app.member(admin, 'gone@example.com');
    removedsToken = await removed.token();
    await app.deleteUser(removed.userId);
  });
  afterAll(async () => {
    await app.close();
    await mails.stop();
  });

  /**
   * Returns the status for a caller. Bodies are empty: an admitted caller gets a validation error, or changes nothing
   * that others need.
   */
  async function statusFor(endpoint: AnyEndpoint, client: Client, id = unknownId): Promise<string> {
    const hasBody = endpoint.method !== 'GET' && endpoint.method !== 'DELETE';
    const { status, body } = await client.call(endpoint.method, targetOf(endpoint, id), hasBody ? { body: {} } : {});
    if (endpoint.method === 'DELETE' && endpoint.path === '/org') await undelete();
    // Two refusals share this status: who may not, and what is wrong with the input.
    return status === 400 && body.error?.code === 'ADMIN_REQUIRED' ? '400 ADMIN_REQUIRED' : String(status);
  }

  /** The one call whose success would take everything away from the calls after it. */
  async function undelete(): Promise<void> {
    await app.services.db.transaction((tx) => tx.updateTable('organizations').set({ is_deleted: 0 }).execute());
  }

  /** Signing out ends the session that it is tried with. */
  async function sessionFor(endpoint: AnyEndpoint, email: string, session: Client): Promise<Client> {
    return endpoint.path.includes('/logout/') ? app.signIn(email) : session;
  }

  /** The answer with each scope alone. */
  async function byScope(endpoint: AnyEndpoint, clients: ReadonlyMap<string, Client>, id = unknownId): Promise<string> {
    const statuses = new Map<string, string[]>();
    for (const [name, client] of clients) {
      const status = await statusFor(endpoint, client, id);
      statuses.set(status, [...(statuses.get(status) ?? []), name]);
    }
    return summary(statuses);
  }

  /** Returns the status for a member where the id in the address is the member's own. */
  async function onSelf(endpoint: AnyEndpoint): Promise<string> {
    if (!endpoint.path.includes('/:id')) return '–';
    const { userId } = member;
    return `${await statusFor(endpoint, member, userId)} / ${await byScope(endpoint, tokens.ofMember, userId)}`;
  }

  /** Returns the rows for promotions to administrator; no one is promoted: the user does not exist. */
  async function rowsOfPromotions(): Promise<readonly string[]> {
    const groups = (await admin.get('/userGroups')).body.groups;
    const groupIds = groups.filter(({ type }: Json) => type === 'admin').map(({ _id }: Json) => _id);
    const calls: readonly (readonly [string, Json])[] = [
      ['/userGroups/add-users', { userIds: [unknownId], groupIds }],
      ['/users/bulk/invite', { emails: [memberEmail], groupIds }],
    ];
    const callers = [member, await member.token(), admin, await admin.token()];
    const rows = calls.map(async ([path, body]) => {
      const responses = await Promise.all(callers.map((caller) => caller.post(path, body)));
      return `| POST /api/v1${path} with the group admin | ${responses.map(({ status }) => status).join(' | ')} |`;
    });
    const heads = [
      "member's session",
      "member's token, every scope",
      "administrator's session",
      "administrator's token, every scope",
    ];
    return [`| Operation | ${heads.join(' | ')} |`, `|${'---|'.repeat(5)}`, ...(await Promise.all(rows))];
  }

  it('says who reaches what, with what (HTTP-7, SCOPE-1, SCOPE-2, SCOPE-10, AUTH-24, AUTH-30, AUTH-32, ERR-13, ERR-16, SCOPE-21, SCOPE-27, LEAVER-1, SERVICE-1 to SERVICE-6)', async () => {
    const rows: string[] = [];
    for (const endpoint of routes) {
      const row = [
        `${endpoint.method} ${addressOf(endpoint)}`,
        await statusFor(endpoint, app.anonymous),
        await statusFor(endpoint, await sessionFor(endpoint, memberEmail, member)),
        await statusFor(endpoint, await sessionFor(endpoint, 'ada@example.com', admin)),
        await byScope(endpoint, tokens.ofMember),
        await byScope(endpoint, tokens.ofAdmin),
        await onSelf(endpoint),
        await byScope(endpoint, services),
        `${await statusFor(endpoint, removed)} / ${await statusFor(endpoint, removedsToken)}`,
      ];
      rows.push(`| ${row.join(' | ')} |`);
    }
    const promotions = await rowsOfPromotions();
    const table = [
      '# Who gets what',
      '',
      'Calls with an empty body and with ids that belong to nothing, so that 400, 404 and 415 mean: let through.',
      '',
      `| ${columns.join(' | ')} |`,
      `|${'---|'.repeat(columns.length)}`,
      ...rows,
      '',
      '# Who makes administrators',
      '',
      ...promotions,
      '',
    ].join('\n');
    await expect(table, 'stale: npm run gen writes it').toMatchFileSnapshot('snapshots/access-matrix.md');
  }, 120_000);
});
