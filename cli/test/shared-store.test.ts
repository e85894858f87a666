import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { PostgresPlace } from '../../server/test/support/postgres-place.ts';
import { ensureServerIsBuilt, ServerProcess, withDirectory } from '../../server/test/support/server-process.ts';
import { TestApp } from '../../server/test/support/test-app.ts';
import { latchkey } from './command-process.ts';
import { smtp } from './rotated-keys.ts';

beforeAll(ensureServerIsBuilt);
vi.setConfig({ testTimeout: 120_000 });

let place: PostgresPlace;
beforeEach(async () => {
  place = await PostgresPlace.make();
});
afterEach(() => place.remove());

const key = 'f0e1d2c3b4a5968778695a4b3c2d1e0f'.repeat(2);

describe('commands with DATABASE_URL', () => {
  it('0: work on that store, while a server runs, and --data-dir names an embedded one all the same (CLI-33, FIT-108)', () =>
    withDirectory(async (directory) => {
      const environment = { DATABASE_URL: place.url, ENCRYPTION_KEY: key, DATA_DIR: join(directory, 'node') };
      const run = async (...args: string[]) => {
        const { code, stdout, stderr } = await latchkey([...args, '--json'], { environment });
        expect({ code, stderr }, args.join(' ')).toEqual({ code: 0, stderr: '' });
        return JSON.parse(stdout);
      };
      const seeded = await run('seed', '--users', '5', '--tokens', '3', '--print-token');
      const server = await ServerProcess.start({ ...environment, RATE_LIMIT: 'off' });
      const read = async () => (await server.call('GET', '/org', { token: seeded.token })).status;
      expect(await read()).toBe(200);
      expect(await run('org', 'status')).toMatchObject({ organization: { activeUsers: 6 } });
      expect(await run('migrate')).toEqual({ schema: { from: expect.any(Number), to: expect.any(Number) } });
      const { service } = await run('service', 'create', '--name', 'x', '--scopes', 'USER_LOOKUP');
      expect((await run('service', 'list')).services).toMatchObject([{ clientId: service.clientId }]);
      expect(await run('audit', 'verify')).toMatchObject({ ok: true });
      const { tokens } = await run('token', 'list', '--search', 'Seeded', '--limit', '100');
      expect(tokens).toHaveLength(4);
      const file = join(directory, 'archive.jsonl');
      const { archived } = await run('audit', 'archive', '--before', '2999-01-01', '--to', file);
      expect(archived).toMatchObject({ file, removed: 0 });
      expect(readFileSync(file, 'utf8').trimEnd().split('\n')).toHaveLength(archived.records);
      const { jti } = JSON.parse(Buffer.from(seeded.token.split('.')[1], 'base64url').toString());
      await run('token', 'revoke', '--id', jti);
      expect(await read()).toBe(401);
      const ofServer = async (PORT: string) => {
        const { stdout, stderr } = await latchkey(['doctor', '--json'], { environment: { ...environment, PORT } });
        const { checks } = stdout === '' ? JSON.parse(stderr).error : JSON.parse(stdout);
        return checks.find(({ name }: { name: string }) => name === 'server').message;
      };
      const here = 'the database of DATABASE_URL';
      expect(await ofServer(new URL(server.url).port)).toBe(`A server runs on ${here} and answers`);
      expect(await ofServer('1')).toMatch(
        new RegExp(`^A server runs on ${here}, but none answers at 127\\.0\\.0\\.1:1 `),
      );
      expect((await server.end('SIGTERM')).code).toBe(0);
      expect(await ofServer('1')).toBe(`No server runs on ${here}`);

      const dataDir = join(directory, 'embedded');
      await run('seed', '--users', '2', '--data-dir', dataDir);
      expect(existsSync(join(dataDir, 'latchkey.db'))).toBe(true);
      expect(await run('org', 'status', '--data-dir', dataDir)).toMatchObject({ organization: { activeUsers: 3 } });
      expect(await run('org', 'status')).toMatchObject({ organization: { activeUsers: 6 } });
    }));

  it('0: keys rotate --encryption writes everything anew, org restore brings all back, org purge leaves only the logs (AUDIT-15, CLI-8, CLI-9)', () =>
    withDirectory(async (directory) => {
      const environment = { DATABASE_URL: place.url, ENCRYPTION_KEY: key, DATA_DIR: join(directory, 'node') };
      const app = await TestApp.start(environment);
      const admin = await app.setUp();
      expect((await admin.put('/settings/smtp', smtp)).status).toBe(200);
      expect((await admin.post('/webhooks', { url: 'https://example.com/hook' })).status).toBe(201);
      await app.stop();

      const newKey = createHash('sha256').update('another key').digest('hex');
      const newKeyFile = join(directory, 'new-key');
      writeFileSync(newKeyFile, newKey, { mode: 0o600 });
      const rotate = ['keys', 'rotate', '--encryption', '--new-key-file', newKeyFile, '--nodes-stopped', '--json'];
      const rotated = await latchkey(rotate, { environment });
      expect(rotated).toMatchObject({ code: 0, stderr: '' });
      // The mail settings, the secret of the webhook, and the signing keys.
      expect(JSON.parse(rotated.stdout)).toMatchObject({ encryption: { encrypted: 3, unreadable: 0 } });

      const withNewKey = { ...environment, ENCRYPTION_KEY: newKey };
      const again = await TestApp.start(withNewKey);
      expect((await again.services.mail.settings())?.login?.password.expose()).toBe(smtp.password);
      await again.deleteOrganization();
      expect(await latchkey(['org', 'restore'], { environment: withNewKey })).toMatchObject({ code: 0, stderr: '' });
      await again.deleteOrganization();
      await again.stop();
      const purged = await latchkey(['org', 'purge', '--yes'], { environment: withNewKey });
      expect(purged).toMatchObject({ code: 0, stderr: '' });
      expect(await place.run('select * from users')).toEqual([]);
      expect(await place.run('select * from organizations')).toEqual([]);
      expect(await place.run('select 1 from audit_log')).not.toEqual([]);
    }));

  it('0: doctor warns of a database that does not sync what it acknowledges (CLI-21, STORE-19)', () =>
    withDirectory(async (directory) => {
      const environment = { DATABASE_URL: place.url, ENCRYPTION_KEY: key, DATA_DIR: directory, PORT: '1' };
      await latchkey(['seed', '--users', '1'], { environment });
      await place.run(`alter database ${place.name} set synchronous_commit = off`);
      const { code, stdout } = await latchkey(['doctor', '--json'], { environment });
      expect(code).toBe(0);
      expect(JSON.parse(stdout).checks).toContainEqual({
        name: 'integrity',
        state: 'warning',
        message: expect.stringMatching(/may lose what it acknowledges when power fails: .*synchronous_commit off$/),
        cure: expect.stringContaining('ALTER DATABASE'),
      });
    }));

  it('1: make no store, and nothing in the database, but for seed (CLI-7, CLI-33)', () =>
    withDirectory(async (directory) => {
      const environment = { DATABASE_URL: place.url, DATA_DIR: directory };
      for (const args of [
        ['org', 'status'],
        ['migrate'],
        ['token', 'list'],
        ['audit', 'verify'],
        ['service', 'list'],
      ]) {
        const { code, stderr } = await latchkey(args, { environment });
        expect({ code, stderr }, args.join(' ')).toEqual({
          code: 1,
          stderr: 'latchkey: DATABASE_URL names a database that holds no store: give the one that the server uses\n',
        });
      }
      expect(await place.run("select 1 from information_schema.tables where table_schema = 'public'")).toEqual([]);
    }));
});
