import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { emailAddress } from '../../server/src/text/email-address.ts';
import { foldCase, plainText } from '../../server/src/text/plain-text.ts';
import {
  ensureServerIsBuilt,
  readStore,
  ServerProcess,
  withDirectory,
} from '../../server/test/support/server-process.ts';
import { TestApp } from '../../server/test/support/test-app.ts';
import { latchkey, latchkeyJson } from './command-process.ts';

beforeAll(ensureServerIsBuilt);

const usersSql = 'SELECT * FROM users ORDER BY id';

/** Expects that all users are in `everyone` and have an event; numbers have no gaps. */
function expectConsistent(dataDir: string): void {
  const users = readStore(dataDir, usersSql);
  expect(users.map(({ slug }) => slug)).toEqual(users.map((_, place) => `user-${1_001 + place}`));
  const added = readStore(dataDir, "SELECT payload FROM outbox WHERE event_type = 'userAdded' ORDER BY sequence");
  expect(added.map(({ payload }) => JSON.parse(payload))).toEqual(
    users.map(({ id: userId, org_id: orgId, email, full_name: fullName }, place) => ({
      orgId,
      userId,
      email,
      fullName,
      syncAction: place === 0 ? 'none' : 'immediate',
    })),
  );
  const sequences = readStore(dataDir, 'SELECT sequence FROM outbox ORDER BY sequence');
  expect(sequences.map(({ sequence }) => sequence)).toEqual(sequences.map((_, place) => place + 1));
  const members = readStore(
    dataDir,
    "SELECT m.user_id AS id FROM group_members m JOIN user_groups g ON g.id = m.group_id WHERE g.type = 'everyone' ORDER BY m.user_id",
  );
  expect(members.map(({ id }) => id)).toEqual(users.map(({ id }) => id));
}

describe('latchkey seed', () => {
  it('0: fills a new store; the administrator signs in with what is printed once, and the token works (CLI-10, EVENT-8)', () =>
    withDirectory(async (directory) => {
      const dataDir = join(directory, 'new');
      const input = ['--users', '2500', '--groups', '3', '--tokens', '2100', '--print-token'];
      const { password, token, ...seeded } = await latchkeyJson('seed', '--data-dir', dataDir, ...input);
      expect(seeded).toEqual({
        organization: 'org-1001',
        isNew: true,
        users: 2_500,
        groups: 3,
        tokens: 2_100,
        seconds: expect.any(Number),
      });
      expectConsistent(dataDir);
      const count = (sql: string) => readStore(dataDir, `SELECT count(*) AS count FROM ${sql}`)[0].count;
      expect(count('users')).toBe(2_501);
      expect(count("user_groups WHERE type = 'custom'")).toBe(3);
      expect(count("group_members m JOIN user_groups g ON g.id = m.group_id WHERE g.type = 'custom'")).toBeGreaterThan(
        3,
      );
      expect(count('personal_access_tokens')).toBe(2_101);
      const audit = readStore(dataDir, 'SELECT action, request_id, details FROM audit_log ORDER BY sequence');
      expect(audit.map(({ action }) => action)).toEqual(['org.created', 'store.seeded', 'token.created']);
      expect(JSON.parse(audit[1].details)).toEqual({ users: 2_500, groups: 3, tokens: 2_100, seed: 1 });

      const server = await ServerProcess.start({ DATA_DIR: dataDir, RATE_LIMIT: 'off' });
      expect(await server.call('GET', '/org', { token })).toMatchObject({ status: 200, body: { slug: 'org-1001' } });
      const body = { method: 'password', credentials: { password }, email: 'admin@example.com' };
      const headers = { 'x-session-token': await server.beginSignIn() };
      expect((await server.call('POST', '/userAccount/authenticate', { body, headers })).status).toBe(200);
      await server.end('SIGTERM');
    }));

  it('makes people whom the service would take, in many scripts, the same for the same seed (CLI-10, USER-9, USER-13)', () =>
    withDirectory(async (directory) => {
      const made = async (name: string, ...more: string[]) => {
        const dataDir = join(directory, name);
        await latchkeyJson('seed', '--data-dir', dataDir, '--users', '1500', ...more);
        const rows = readStore(dataDir, usersSql).slice(1);
        return rows.map(({ email, full_name, name_key, mobile, designation }) => ({
          email,
          full_name,
          name_key,
          mobile,
          designation,
        }));
      };
      const users = await made('first');
      for (const { email, full_name: name, name_key: key } of users) {
        expect([emailAddress.parse(email), plainText().parse(name)]).toEqual([email, name]);
        expect(key).toBe(foldCase(name));
      }
      for (const script of ['Latin', 'Greek', 'Cyrillic', 'Han', 'Hangul', 'Arabic', 'Extended_Pictographic']) {
        const property = script === 'Extended_Pictographic' ? script : `Script=${script}`;
        const pattern = new RegExp(`\\p{${property}}`, 'u');
        expect(
          users.some(({ full_name: name }) => pattern.test(name)),
          script,
        ).toBe(true);
      }
      expect(await made('again')).toEqual(users);
      expect(await made('other', '--seed', '2')).not.toEqual(users);
    }));

  it('adds to an organization, while a server runs, as often as it is told to (CLI-7, CLI-10)', () =>
    withDirectory(async (dataDir) => {
      const server = await ServerProcess.start({ DATA_DIR: dataDir, RATE_LIMIT: 'off' });
      const session = await server.setUp();
      const seeding = latchkeyJson('seed', '--data-dir', dataDir, '--users', '6000');
      const state = { isSeeding: true };
      const done = seeding.finally(() => {
        state.isSeeding = false;
      });
      const statuses: number[] = [];
      for (let count = 0; state.isSeeding; count += 1) {
        const body = { fullName: 'Somebody', email: `between-${count}@example.com` };
        statuses.push((await server.call('POST', '/users', { token: session, body })).status);
      }
      expect(await done).toMatchObject({ organization: 'org-1001', isNew: false, password: null, token: null });
      expect(new Set(statuses)).toEqual(new Set([201]));
      await latchkeyJson('seed', '--data-dir', dataDir, '--users', '10');
      await server.end('SIGTERM');
      expectConsistent(dataDir);
      expect(readStore(dataDir, 'SELECT id FROM users')).toHaveLength(6_011 + statuses.length);
    }));

  it('takes the password from a file, and prints it nowhere (CLI-10, PASSWORD-1)', () =>
    withDirectory(async (directory) => {
      const file = join(directory, 'password');
      const dataDir = join(directory, 'store');
      const args = ['seed', '--users', '1', '--data-dir', dataDir, '--password-file', file];
      expect(await latchkey(args)).toMatchObject({
        code: 1,
        stderr: `latchkey: The password file ${file} cannot be read\n`,
      });
      writeFileSync(file, 'short\n');
      expect(await latchkey(args)).toMatchObject({
        code: 3,
        stderr: `latchkey: The password in ${file} must have at least 8 characters\n`,
      });
      expect(existsSync(dataDir)).toBe(false);
      writeFileSync(file, 'Marble-Kettle-7\n');
      const { code, stdout } = await latchkey(args);
      expect(code).toBe(0);
      expect(stdout).not.toContain('Marble-Kettle-7');
      expect(await latchkey(args)).toMatchObject({
        code: 3,
        stderr: 'latchkey: There is an organization already: its administrator keeps the password\n',
      });
    }));

  it('3: adds nothing to a deleted organization (CLI-6, CLI-10)', () =>
    withDirectory(async (dataDir) => {
      const app = await TestApp.start({ DATA_DIR: dataDir });
      await app.setUp();
      await app.deleteOrganization();
      await app.stop();
      expect(await latchkey(['seed', '--users', '5', '--data-dir', dataDir])).toMatchObject({
        code: 3,
        stdout: '',
        stderr: 'latchkey: The organization is deleted: restore it or purge it first\n',
      });
      expect(readStore(dataDir, usersSql)).toHaveLength(1);
    }));

  it('3: stops when the organization is deleted meanwhile, and tells of no one after it (CLI-10, EVENT-8)', () =>
    withDirectory(async (dataDir) => {
      const server = await ServerProcess.start({ DATA_DIR: dataDir, RATE_LIMIT: 'off' });
      const session = await server.setUp();
      const seeding = latchkey(['seed', '--data-dir', dataDir, '--users', '200000']);
      const seeded = async () => {
        const { body } = await server.call('GET', '/users?limit=1', { token: session });
        return body.pagination.totalCount;
      };
      await expect.poll(seeded, { timeout: 20_000 }).toBeGreaterThan(1);
      expect((await server.call('DELETE', '/org', { token: session })).status).toBe(200);
      expect(await seeding).toMatchObject({
        code: 3,
        stdout: '',
        stderr: 'latchkey: The organization was deleted meanwhile: the records created so far stay in it\n',
      });
      await server.end('SIGTERM');
      const types = readStore(dataDir, 'SELECT event_type FROM outbox ORDER BY sequence');
      expect(types.at(-1)?.event_type).toBe('orgDeleted');
    }));
});
