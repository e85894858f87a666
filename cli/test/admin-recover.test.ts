import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { secondConnection } from '../../server/test/support/second-connection.ts';
import {
  ensureServerIsBuilt,
  readStore,
  ServerProcess,
  withDirectory,
} from '../../server/test/support/server-process.ts';
import { type Json, organization } from '../../server/test/support/test-app.ts';
import { latchkey, latchkeyJson } from './command-process.ts';

beforeAll(ensureServerIsBuilt);
vi.setConfig({ testTimeout: 60_000 });

const { contactEmail } = organization;
const newPassword = 'Copper-Saddle-8';

/** Sets a password with the token in a link. */
function reset(server: ServerProcess, link: string): Promise<{ status: number; body: Json }> {
  const token = link.split('#token=')[1];
  return server.call('POST', '/userAccount/password/reset/token', { token, body: { password: newPassword } });
}

/** Signs in with the new password; answers the access token. */
async function signIn(server: ServerProcess, email: string): Promise<{ status: number; body: Json }> {
  const headers = { 'x-session-token': await server.beginSignIn() };
  const body = { method: 'password', credentials: { password: newPassword }, email };
  return server.call('POST', '/userAccount/authenticate', { body, headers });
}

async function expectRefused(args: readonly string[], message: string): Promise<void> {
  const command = ['admin', 'recover', ...args];
  expect(await latchkey(command)).toEqual({ code: 3, signal: null, stdout: '', stderr: `latchkey: ${message}\n` });
  const { code, stdout, stderr } = await latchkey([...command, '--json']);
  expect({ code, stdout, ...JSON.parse(stderr) }).toEqual({ code: 3, stdout: '', error: { code: 'REFUSED', message } });
}

describe('latchkey admin recover', () => {
  it('0: prints a link with which the first administrator sets a password, while a server runs, at its address (CLI-11, CLI-7, FIT-107)', () =>
    withDirectory(async (dataDir) => {
      const BASE_URL = 'https://id.example.net/base';
      const server = await ServerProcess.start({ DATA_DIR: dataDir, RATE_LIMIT: 'off', BASE_URL });
      const session = await server.setUp();
      expect((await server.call('GET', '/org', { token: session })).status).toBe(200);
      const environment = { DATA_DIR: dataDir, FRONTEND_URL: 'https://www.example.net' };
      const first = await latchkey(['admin', 'recover'], { environment });
      expect(first).toMatchObject({ code: 0, stderr: '' });
      expect(first.stdout).toMatch(
        /^Open this link as ada@example\.com, once, until \S+Z:\nhttps:\/\/www\.example\.net\/reset-password#token=\S+\n$/,
      );
      const { recovery } = await latchkeyJson('admin', 'recover', '--data-dir', dataDir);
      expect(recovery).toEqual({ email: contactEmail, link: expect.any(String), expiresAt: expect.any(String) });
      // Of the server, whose environment this command has not.
      expect(recovery.link).toMatch(/^https:\/\/id\.example\.net\/base\/reset-password#/);

      // The later link has taken the place of the earlier one, and works once.
      expect((await reset(server, first.stdout.trim())).status).toBe(410);
      const [row] = readStore(dataDir, 'SELECT * FROM one_time_links WHERE ended_at IS NULL');
      expect(row.expires_at - row.created_at).toBe(20 * 60_000);
      expect(new Date(row.expires_at).toISOString()).toBe(recovery.expiresAt);
      expect((await reset(server, recovery.link)).status).toBe(200);
      expect((await reset(server, recovery.link)).status).toBe(410);
      expect((await server.call('GET', '/org', { token: session })).status).toBe(401);
      expect((await signIn(server, contactEmail)).status).toBe(200);

      const [{ id }] = readStore(dataDir, 'SELECT id FROM users');
      const audited = readStore(dataDir, "SELECT * FROM audit_log WHERE action = 'operator.recovery-link'");
      const expected = { actor_user_id: null, subject_id: id, network: 'local', request_id: 'operator' };
      expect(audited).toMatchObject([expected, expected]);
      expect(audited.map(({ details }) => JSON.parse(details))).toEqual([
        { resetSignIn: false },
        { resetSignIn: false },
      ]);
      const { code, stdout, stderr } = await server.end('SIGTERM');
      expect(code).toBe(0);
      const files = readdirSync(dataDir).map((name) => readFileSync(join(dataDir, name), 'latin1'));
      for (const text of [stdout, stderr, ...files]) {
        for (const link of [first.stdout.trim(), recovery.link]) expect(text).not.toContain(link.split('#token=')[1]);
      }
    }));

  it('0: --reset-sign-in opens a sign-in that is locked to what does not work (CLI-11)', () =>
    withDirectory(async (dataDir) => {
      const server = await ServerProcess.start({ DATA_DIR: dataDir, RATE_LIMIT: 'off' });
      await server.setUp();
      const at = ['--data-dir', dataDir];
      const methods = async () => (await server.call('POST', '/userAccount/initAuth')).body.allowedMethods;
      const store = secondConnection({ dataDir });
      store.exec(`UPDATE auth_configs SET steps = '[{"order":1,"allowedMethods":[{"type":"oidc"}]}]'`);
      store.close();
      expect(await methods()).toEqual(['oidc']);
      await expectRefused(at, 'Passwords are not used for sign-in here: --reset-sign-in resets it to passwords alone');
      expect(readStore(dataDir, 'SELECT id FROM one_time_links')).toEqual([]);
      expect(await methods()).toEqual(['oidc']);

      const { recovery } = await latchkeyJson('admin', 'recover', '--reset-sign-in', ...at);
      expect(await methods()).toEqual(['password']);
      expect((await reset(server, recovery.link)).status).toBe(200);
      const { status, body } = await signIn(server, contactEmail);
      expect([status, body.message]).toEqual([200, 'Fully authenticated']);
      const [{ details }] = readStore(dataDir, "SELECT details FROM audit_log WHERE action = 'operator.recovery-link'");
      expect(JSON.parse(details)).toEqual({ resetSignIn: true });
      await server.end('SIGTERM');
    }));

  it('0, 3: --email says which administrator, in any spelling; no one else gets a link (CLI-11, CLI-6)', () =>
    withDirectory(async (dataDir) => {
      const server = await ServerProcess.start({ DATA_DIR: dataDir, RATE_LIMIT: 'off' });
      const at = ['--data-dir', dataDir];
      const token = await server.setUp();
      const add = async (name: string) => {
        const body = { fullName: `Person ${name}`, email: `${name}@example.com` };
        return (await server.call('POST', '/users', { token, body })).body._id;
      };
      const [grace, , hedy] = [await add('grace'), await add('katherine'), await add('hedy')];
      const groups = (await server.call('GET', '/userGroups', { token })).body.groups;
      const groupIds = groups.filter(({ type }: Json) => type === 'admin').map(({ _id }: Json) => _id);
      const joined = await server.call('POST', '/userGroups/add-users', {
        token,
        body: { userIds: [grace], groupIds },
      });
      expect(joined.status).toBe(200);
      expect((await server.call('DELETE', `/users/${hedy}`, { token })).status).toBe(200);

      const { recovery } = await latchkeyJson('admin', 'recover', '--email', ' Grace@EXAMPLE.com ', ...at);
      expect(recovery.email).toBe('grace@example.com');
      expect((await reset(server, recovery.link)).status).toBe(200);
      expect((await signIn(server, 'grace@example.com')).status).toBe(200);
      expect((await latchkeyJson('admin', 'recover', ...at)).recovery.email).toBe(contactEmail);
      const before = readStore(dataDir, 'SELECT id FROM one_time_links');
      const others = ['katherine@example.com', 'hedy@example.com', 'nobody@example.com', 'no address'];
      const anonymous = 'There is no active administrator with that address';
      await Promise.all(others.map((email) => expectRefused(['--email', email, ...at], anonymous)));
      expect(readStore(dataDir, 'SELECT id FROM one_time_links')).toEqual(before);
      await server.end('SIGTERM');
    }));

  it('3: there is no one to let in without an organization, or with a deleted one (CLI-6)', () =>
    withDirectory(async (dataDir) => {
      const server = await ServerProcess.start({ DATA_DIR: dataDir, RATE_LIMIT: 'off' });
      const at = ['--reset-sign-in', '--data-dir', dataDir];
      await expectRefused(at, 'This store has no organization: latchkey org create makes one');
      const token = await server.setUp();
      await server.call('DELETE', '/org', { token });
      await expectRefused(at, 'The organization is deleted: latchkey org restore brings it back');
      expect(readStore(dataDir, 'SELECT id FROM one_time_links')).toEqual([]);
      await server.end('SIGTERM');
    }));
});
