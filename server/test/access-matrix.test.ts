import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { catalogue } from '../src/access/scopes.ts';
import type { AnyEndpoint } from '../src/http/endpoint.ts';
import { addressOf } from '../src/http/endpoint.ts';
import { routes } from '../src/routes.gen.ts';
import { type Client, TestApp } from './test-app.ts';

const nobodysId = '0123456789abcdef01234567';
const memberEmail = 'grace@example.com';

/** The address to call, from the root, with ids that belong to nothing. */
function targetOf(endpoint: AnyEndpoint): string {
  return `/${addressOf(endpoint).replace(/:\w+/g, nobodysId)}`;
}

describe('access matrix', () => {
  let app: TestApp;
  let admin: Client;
  let member: Client;
  let removed: Client;
  let removedsToken: Client;
  const tokens = new Map<string, { ofMember: Client; ofAdmin: Client }>();

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    member = await app.member(admin, memberEmail);
    for (const { name } of catalogue) {
      const scopes = [name];
      tokens.set(name, { ofMember: await member.token({ scopes }), ofAdmin: await admin.token({ scopes }) });
    }
    removed = await app.member(admin, 'gone@example.com');
    removedsToken = await removed.token();
    await app.deleteUser(removed.userId);
  });
  afterAll(() => app.close());

  /** What a caller gets. Bodies are empty: whoever is let through meets validation, and nothing is changed. */
  async function statusFor(endpoint: AnyEndpoint, client: Client): Promise<string> {
    const hasBody = endpoint.method !== 'GET' && endpoint.method !== 'DELETE';
    const { status, body } = await client.call(endpoint.method, targetOf(endpoint), hasBody ? { body: {} } : {});
    // Two refusals share this status: who may not, and what is wrong with the input.
    return status === 400 && body.error.code === 'ADMIN_REQUIRED' ? '400 ADMIN_REQUIRED' : String(status);
  }

  /** Signing out ends the session that it is tried with. */
  async function sessionFor(endpoint: AnyEndpoint, email: string, session: Client): Promise<Client> {
    return endpoint.path.includes('/logout/') ? app.signIn(email) : session;
  }

  /** The answer with each scope alone: `scopes → status`, the most common status last, as `else`, or as `any` where it is the only one. */
  async function byScope(endpoint: AnyEndpoint, whose: 'ofMember' | 'ofAdmin'): Promise<string> {
    const statuses = new Map<string, string[]>();
    for (const [name, clients] of tokens) {
      const status = await statusFor(endpoint, clients[whose]);
      statuses.set(status, [...(statuses.get(status) ?? []), name]);
    }
    const groups = [...statuses].sort(([, a], [, b]) => a.length - b.length);
    const common = groups.length === 1 ? 'any' : 'else';
    return groups
      .map(([status, names], place) => `${place < groups.length - 1 ? names.join(' ') : common} → ${status}`)
      .join(', ');
  }

  it('says who reaches what, with what (HTTP-7, SCOPE-1, SCOPE-2, SCOPE-10, AUTH-24, AUTH-32, ERR-13, ERR-16)', async () => {
    const rows: string[] = [];
    for (const endpoint of routes) {
      const row = [
        `${endpoint.method} ${addressOf(endpoint)}`,
        await statusFor(endpoint, app.nobody),
        await statusFor(endpoint, await sessionFor(endpoint, memberEmail, member)),
        await statusFor(endpoint, await sessionFor(endpoint, 'ada@example.com', admin)),
        await byScope(endpoint, 'ofMember'),
        await byScope(endpoint, 'ofAdmin'),
        `${await statusFor(endpoint, removed)} / ${await statusFor(endpoint, removedsToken)}`,
      ];
      rows.push(`| ${row.join(' | ')} |`);
    }
    const table = [
      '# Who gets what',
      '',
      'Calls with an empty body and with ids that belong to nothing, so that 400 and 404 mean: let through.',
      '',
      "| Operation | nobody | member's session | administrator's session | member's token, by its only scope | administrator's token, by its only scope | removed owner: session / token |",
      '|---|---|---|---|---|---|---|',
      ...rows,
      '',
    ].join('\n');
    await expect(table).toMatchFileSnapshot('snapshots/access-matrix.md');
  });
});
