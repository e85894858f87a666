import { beforeAll, describe, expect, it } from 'vitest';
import { secondConnection } from '../../server/test/support/second-connection.ts';
import {
  ensureServerIsBuilt,
  readStore,
  ServerProcess,
  withDirectory,
} from '../../server/test/support/server-process.ts';
import { tablesOf } from '../../server/test/support/statement-watch.ts';
import { type Json, organization } from '../../server/test/support/test-app.ts';
import { latchkey, latchkeyJson } from './command-process.ts';

beforeAll(ensureServerIsBuilt);

const userList = ['grace', 'katherine', 'hedy'];

/** Registers a service; answers a token that it got. */
async function registerService(server: ServerProcess, session: string): Promise<string> {
  const body = { name: 'connector', scopes: ['USER_LOOKUP', 'EVENTS_READ'] };
  const { clientId, clientSecret } = (await server.call('POST', '/service-clients', { token: session, body })).body;
  const asked = { grant_type: 'client_credentials', client_id: clientId, client_secret: clientSecret };
  return (await server.call('POST', '/oauth2/token', { body: asked })).body.access_token;
}

/** Leaves unfinished sign-ins of other methods in the store. */
function leaveSignIns(dataDir: string): void {
  const store = secondConnection({ dataDir });
  store.exec(`
    INSERT INTO external_identities (issuer, subject, user_id, created_at) SELECT 'https://id.example.com', 'subject', id, 0 FROM users LIMIT 1;
    INSERT INTO sign_in_tickets (hash, user_id, sign_in_id, expires_at) SELECT 'hash of a ticket', id, 'a sign-in', 9e12 FROM users LIMIT 1;
    INSERT INTO sign_in_progress SELECT 'a sign-in', id, 1, 0, 9e12, 'password' FROM users LIMIT 1;
    INSERT INTO one_time_codes SELECT id, 'keyed hash', 9e12, 0 FROM users LIMIT 1;
    INSERT INTO wrong_codes SELECT id, 1, 9e12 FROM users LIMIT 1;
    INSERT INTO mailed_codes SELECT id, '', 'keyed hash', 9e12, 0, 0, 1, 9e12 FROM users LIMIT 1;
    INSERT INTO idempotency_keys SELECT id, 'hash of a key', 'hash of a request', '{}', 2, 9e12 FROM users LIMIT 1;
    INSERT INTO webhook_attempts SELECT 'an attempt', id, 'an event', 'userAdded', 1, 1, 0, 1, 200, NULL FROM webhooks;
  `);
  store.close();
}

/** A webhook that is off, and that has been asked to send an event again. */
async function addWebhook(server: ServerProcess, token: string): Promise<void> {
  const { body } = await server.call('POST', '/webhooks', { token, body: { url: 'https://example.com/' } });
  const path = `/webhooks/${body.id}`;
  await server.call('PATCH', path, { token, body: { enabled: false } });
  const { events } = (await server.call('GET', '/events', { token })).body;
  const asked = await server.call('POST', `${path}/replay`, { token, body: { eventId: events[0].id } });
  expect(asked.status).toBe(200);
}

/**
 * Starts a server with an organization, three more users of whom the last is deleted, a service, and a personal access
 * token.
 */
async function populate(server: ServerProcess) {
  const session = await server.setUp();
  const ids: string[] = [];
  for (const name of userList) {
    const body = { fullName: `Person ${name}`, email: `${name}@example.com` };
    ids.push((await server.call('POST', '/users', { token: session, body })).body._id);
  }
  const members = ids.map((userId) => ({ userId, role: 'READER' }));
  const team = await server.call('POST', '/teams', { token: session, body: { name: 'Research', members } });
  expect(team.status).toBe(201);
  expect((await server.call('DELETE', `/users/${ids.at(-1)}`, { token: session })).status).toBe(200);
  const invited = await server.call('POST', `/users/${ids[0]}/invite-link`, { token: session });
  const mailServer = { host: 'smtp.example.com', from: 'no-reply@example.com' };
  expect((await server.call('PUT', '/settings/smtp', { token: session, body: mailServer })).status).toBe(200);
  const made = await server.call('POST', '/personal-access-tokens', { token: session, body: { name: 'kept' } });
  const link = invited.body.link.split('#token=')[1] as string;
  await addWebhook(server, session);
  const service = await registerService(server, session);
  return { session, token: made.body.token.accessToken as string, link, service };
}

/** Returns the response of a link to a password that is too short: nothing is used up. */
async function tryLink(server: ServerProcess, link: string): Promise<number> {
  return (await server.call('POST', '/userAccount/password/reset/token', { token: link, body: { password: 'x' } }))
    .status;
}

async function deleteOrganization(server: ServerProcess, token: string): Promise<void> {
  expect((await server.call('DELETE', '/org', { token })).status).toBe(200);
}

function eventsOf(dataDir: string): Json[] {
  const rows = readStore(dataDir, 'SELECT sequence, event_type, payload FROM outbox ORDER BY sequence');
  return rows.map(({ payload, ...row }) => ({ ...row, payload: JSON.parse(payload) }));
}

function auditOf(dataDir: string): Json[] {
  const rows = readStore(dataDir, 'SELECT * FROM audit_log ORDER BY sequence');
  return rows.map((row) => ({ ...row, details: JSON.parse(row.details) }));
}

/** Expects the events for consumers when the organization is restored: it, and each active user, in order. */
function expectToldAnew(dataDir: string, before: Json[]): void {
  const after = eventsOf(dataDir);
  expect(after.slice(0, before.length)).toEqual(before);
  const [{ id: orgId }] = readStore(dataDir, 'SELECT id FROM organizations');
  const users = readStore(dataDir, 'SELECT id, email, full_name FROM users WHERE is_deleted = 0 ORDER BY id');
  const told = users.map(({ id: userId, email, full_name: fullName }) => ({
    event_type: 'userAdded',
    payload: { orgId, userId, email, fullName, syncAction: 'immediate' },
  }));
  const created = {
    event_type: 'orgCreated',
    payload: { orgId, accountType: 'business', registeredName: 'Example Ltd' },
  };
  const expected = [created, ...told].map((event, place) => ({ ...event, sequence: before.length + 1 + place }));
  expect(expected).toHaveLength(1 + userList.length);
  expect(after.slice(before.length)).toEqual(expected);
}

async function expectOnlyNewSignIn(
  server: ServerProcess,
  old: { session: string; token: string; link: string },
): Promise<void> {
  const statuses = await Promise.all(
    [old.session, old.token].map(async (token) => {
      const { status, body } = await server.call('GET', '/org', { token });
      return [status, body.error?.code];
    }),
  );
  expect(statuses).toEqual([
    [401, 'SESSION_EXPIRED'],
    [401, 'TOKEN_REVOKED'],
  ]);
  expect(await tryLink(server, old.link)).toBe(410);
  const { accessToken } = await server.signIn();
  const response = await server.call('GET', '/org', { token: accessToken });
  expect(response).toMatchObject({ status: 200, body: { slug: 'org-1001', isDeleted: false } });
  expect(response.body).not.toHaveProperty('deletedByUser');
  const made = await server.call('POST', '/personal-access-tokens', { token: accessToken, body: { name: 'new' } });
  expect((await server.call('GET', '/org', { token: made.body.token.accessToken })).status).toBe(200);
}

describe.each([['a running'], ['a stopped']])('latchkey org restore, on the store of %s server', (kind) => {
  it('0: people sign in again, what was issued before stays dead, consumers are told anew (CLI-3, CLI-7, CLI-8, EVENT-8)', () =>
    withDirectory(async (dataDir) => {
      let server = await ServerProcess.start({ DATA_DIR: dataDir, RATE_LIMIT: 'off' });
      const old = await populate(server);
      expect((await server.call('GET', '/org', { token: old.token })).status).toBe(200);
      await deleteOrganization(server, old.session);
      const before = eventsOf(dataDir);
      const [{ audited }] = readStore(dataDir, 'SELECT count(*) AS audited FROM audit_log');
      expect((await server.call('GET', '/org', { token: old.token })).status).toBe(401);
      if (kind === 'a stopped') await server.end('SIGTERM');

      const { restored } = await latchkeyJson('org', 'restore', '--data-dir', dataDir);
      expect(restored).toEqual({ id: expect.any(String), slug: 'org-1001', activeUsers: 3, revokedTokens: 1 });
      expectToldAnew(dataDir, before);
      const anonymous = { actor_user_id: null, actor_token_id: null, network: 'local', request_id: 'operator' };
      const [{ id: tokenId }] = readStore(dataDir, 'SELECT id FROM personal_access_tokens');
      expect(auditOf(dataDir).slice(audited)).toMatchObject([
        {
          action: 'token.revoked',
          org_id: restored.id,
          subject_id: tokenId,
          ...anonymous,
          details: { reason: 'The organization was deleted' },
        },
        {
          action: 'org.restored',
          org_id: restored.id,
          subject_id: restored.id,
          ...anonymous,
          details: { activeUsers: 3, revokedTokens: 1 },
        },
      ]);

      if (kind === 'a stopped') server = await ServerProcess.start({ DATA_DIR: dataDir, RATE_LIMIT: 'off' });
      await expectOnlyNewSignIn(server, old);
      expect((await server.end('SIGTERM')).code).toBe(0);
    }));
});

describe.each([['a running'], ['a stopped']])('latchkey org purge, on the store of %s server', (kind) => {
  it('0: nothing is left but the logs and the numbers, and POST /org works again (CLI-3, CLI-7, CLI-9, STORE-3)', () =>
    withDirectory(async (dataDir) => {
      let server = await ServerProcess.start({ DATA_DIR: dataDir, RATE_LIMIT: 'off' });
      const old = await populate(server);
      expect(await tryLink(server, old.link)).toBe(400);
      await deleteOrganization(server, old.session);
      expect(await tryLink(server, old.link)).toBe(401);
      expect((await server.call('POST', '/org', { body: organization })).status).toBe(409);
      const readEvents = async () => (await server.call('GET', '/events', { token: old.service })).status;
      expect(await readEvents()).toBe(200);
      leaveSignIns(dataDir);
      const before = tablesOf({ dataDir });
      if (kind === 'a stopped') await server.end('SIGTERM');

      const { purged } = await latchkeyJson('org', 'purge', '--yes', '--data-dir', dataDir);
      expect(purged).toMatchObject({ slug: 'org-1001' });
      expect(purged.removed).toEqual({
        organizations: 1,
        users: 4,
        teams: 1,
        team_members: userList.length,
        password_credentials: 1,
        user_groups: 3,
        group_members: before['group_members']?.length,
        auth_configs: 1,
        personal_access_tokens: 1,
        webhook_attempts: 1,
        dead_letters: 1,
        relays: 1,
        webhooks: 1,
        one_time_links: 1,
        settings: 1,
        sessions: 1,
        session_tokens: 2,
        service_clients: 1,
        service_tokens: 1,
        external_identities: 1,
        sign_in_tickets: 1,
        sign_in_ends: 1,
        sign_in_progress: 1,
        one_time_codes: 1,
        wrong_codes: 1,
        mailed_codes: 1,
        idempotency_keys: 1,
        known_networks: before['known_networks']?.length,
        pictures: before['pictures']?.length,
      });
      const { outbox, audit_log: audit, counters, ...others } = tablesOf({ dataDir });
      for (const [table, rows] of Object.entries(others)) expect({ table, rows }).toEqual({ table, rows: [] });
      expect(outbox).toEqual(before['outbox']);
      expect(audit?.slice(0, -1)).toEqual(before['audit_log']);
      expect(auditOf(dataDir).at(-1)).toMatchObject({
        action: 'org.purged',
        subject_id: purged.id,
        actor_user_id: null,
        request_id: 'operator',
        details: { slug: 'org-1001', removed: purged.removed },
      });
      expect(counters).toContainEqual({ name: 'org', value: 1001 });

      if (kind === 'a stopped') server = await ServerProcess.start({ DATA_DIR: dataDir, RATE_LIMIT: 'off' });
      expect((await server.call('GET', '/org/exists')).body).toEqual({ exists: false });
      for (const token of [old.session, old.token]) {
        expect((await server.call('GET', '/org', { token })).status).toBe(401);
      }
      expect(await tryLink(server, old.link)).toBe(401);
      expect(await readEvents()).toBe(401);
      expect(await server.call('POST', '/org', { body: organization })).toMatchObject({
        status: 200,
        body: { slug: 'org-1002' },
      });
      const { accessToken } = await server.signIn();
      expect((await server.call('GET', '/users', { token: accessToken })).body).toMatchObject([{ slug: 'user-1005' }]);
      expect((await server.end('SIGTERM')).code).toBe(0);
    }));
});

describe('latchkey org', () => {
  it('tells what there is, and refuses what the state does not allow, with 3 (CLI-3, CLI-5, CLI-6)', () =>
    withDirectory(async (dataDir) => {
      const server = await ServerProcess.start({ DATA_DIR: dataDir, RATE_LIMIT: 'off' });
      const at = ['--data-dir', dataDir];
      const none = 'This store has no organization: latchkey org create makes one';
      const notDeleted = 'The organization is not deleted: there is nothing to restore, and nothing that may be purged';
      const expectRefused = async (args: string[], message: string) => {
        expect(await latchkey([...args, ...at])).toMatchObject({
          code: 3,
          stdout: '',
          stderr: `latchkey: ${message}\n`,
        });
        const { code, stdout, stderr } = await latchkey([...args, ...at, '--json']);
        expect({ code, stdout, error: JSON.parse(stderr).error }).toEqual({
          code: 3,
          stdout: '',
          error: { code: 'REFUSED', message },
        });
      };

      expect(await latchkeyJson('org', 'status', ...at)).toEqual({ state: 'none', organization: null });
      await expectRefused(['org', 'restore'], none);
      await expectRefused(['org', 'purge', '--yes'], none);

      const session = await server.setUp();
      const active = await latchkeyJson('org', 'status', ...at);
      expect(active).toMatchObject({
        state: 'active',
        organization: { slug: 'org-1001', isDeleted: false, deletedBy: null, activeUsers: 1 },
      });
      const before = tablesOf({ dataDir });
      await expectRefused(['org', 'restore'], notDeleted);
      await expectRefused(['org', 'purge', '--yes'], notDeleted);
      expect(tablesOf({ dataDir })).toEqual(before);

      await deleteOrganization(server, session);
      const [{ id: adminId }] = readStore(dataDir, 'SELECT id FROM users');
      expect(await latchkeyJson('org', 'status', ...at)).toMatchObject({
        state: 'deleted',
        organization: { isDeleted: true, deletedBy: adminId },
      });
      const { stdout } = await latchkey(['org', 'status'], { environment: { DATA_DIR: dataDir } });
      expect(stdout).toMatch(/^org-1001 \(Example Ltd\) is deleted since \S+, by \w{24}; active users: 1\n$/);
      // No terminal to ask at.
      await expectRefused(['org', 'purge'], 'Purging cannot be undone: confirm it with --yes, or at a terminal');
      expect((await latchkeyJson('org', 'status', ...at)).state).toBe('deleted');
      await server.end('SIGTERM');
    }));
});
