import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { byContent, embedded, embeddedRows, leaveFullStore } from '../../server/test/support/full-store.ts';
import { PostgresPlace } from '../../server/test/support/postgres-place.ts';
import { ensureServerIsBuilt, ServerProcess, withDirectory } from '../../server/test/support/server-process.ts';
import type { Json } from '../../server/test/support/test-app.ts';
import { latchkey, latchkeyJson } from './command-process.ts';
import { watchedCommand } from './move-process.ts';

beforeAll(ensureServerIsBuilt);
vi.setConfig({ testTimeout: 120_000 });

let place: PostgresPlace;
beforeEach(async () => {
  place = await PostgresPlace.make();
});
afterEach(() => place.remove());

/** Every row of the database, by table, but for the one that servers take turns by. */
async function sharedRows(): Promise<Record<string, Record<string, unknown>[]>> {
  const tables = await place.run(
    'select table_name as name from information_schema.tables where table_schema = current_schema()',
  );
  const names = tables.map(({ name }) => String(name)).filter((name) => name !== 'writer');
  const rows: Record<string, Record<string, unknown>[]> = {};
  for (const name of names.sort()) {
    const found = await place.run(`select to_json(t) as row from "${name}" t`);
    rows[name] = found.map(({ row }) => row as Record<string, unknown>).sort(byContent);
  }
  return rows;
}

const key = 'f0e1d2c3b4a5968778695a4b3c2d1e0f'.repeat(2);
const sorted = (rows: Record<string, object[]>) =>
  Object.fromEntries(
    Object.entries(rows).map(([table, list]) => [
      table,
      list
        .map((row) => Object.fromEntries(Object.entries(row).sort(([one], [other]) => (one < other ? -1 : 1))))
        .sort(byContent),
    ]),
  );

describe('latchkey move', () => {
  it('0: moves every row of every table, and the keys; what was issued before works after it (CLI-30, AUTH-36)', () =>
    withDirectory(async (dataDir) => {
      const { token, revoked, kids } = await leaveFullStore(dataDir);
      const before = embeddedRows(dataDir);
      const { moved, next } = await latchkeyJson('move', '--to', place.url, '--data-dir', dataDir);

      expect(embeddedRows(dataDir)).toEqual(before);
      const there = await sharedRows();
      // One more: the keys, encrypted.
      const [own] = there['shared_keys']?.filter(({ name }) => name === 'signing') ?? [];
      expect(own?.['content']).toMatch(/^eyJ/);
      there['shared_keys'] = there['shared_keys']?.filter(({ name }) => name !== 'signing') ?? [];
      expect(sorted(there)).toEqual(sorted(before));

      expect(moved.tables.map(({ table }: { table: string }) => table).sort()).toEqual(Object.keys(before).sort());
      for (const { table, rows, digest } of moved.tables) {
        expect([table, rows]).toEqual([table, before[table]?.length]);
        expect(digest).toMatch(/^[0-9a-f]{64}$/);
      }
      const counters = before['counters']?.map(({ name, value }) => [name, value]) ?? [];
      expect(moved.counters).toEqual(Object.fromEntries(counters));
      expect(moved).toMatchObject({ to: expect.stringContaining(place.name), isResumed: false, signingKeys: 1 });
      expect(next[1]).toContain(`ENCRYPTION_KEY_FILE=${dataDir}/encryption-key`);

      const environment = {
        DATABASE_URL: place.url,
        ENCRYPTION_KEY: '',
        ENCRYPTION_KEY_FILE: join(dataDir, 'encryption-key'),
      };
      const server = await ServerProcess.start({ ...environment, DATA_DIR: join(dataDir, 'node'), RATE_LIMIT: 'off' });
      expect((await server.call('GET', '/org', { token })).status).toBe(200);
      expect((await server.call('GET', '/org', { token: revoked })).status).toBe(401);
      const { accessToken } = await server.signIn();
      const smtp = await server.call('GET', '/settings/smtp', { token: accessToken });
      expect(smtp).toMatchObject({ status: 200, body: { host: 'smtp.example.com' } });
      const jwks: Json = await (await fetch(`${server.url}/.well-known/jwks.json`)).json();
      expect(jwks.keys.map(({ kid }: { kid: string }) => kid)).toEqual(kids);
      expect((await server.end('SIGTERM')).code).toBe(0);
    }));

  it('0: tells in words what was moved and what to do next, and no password (CLI-30)', () =>
    withDirectory(async (dataDir) => {
      await latchkeyJson('seed', '--users', '3', '--data-dir', dataDir);
      const url = new URL(place.url);
      url.password = 'hidden-4711';
      const environment = { DATABASE_URL: url.href, ENCRYPTION_KEY: key };
      const { code, stdout, stderr } = await latchkey(['move', '--data-dir', dataDir], { environment });
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout).toMatch(
        /^Moved to [^\n]+ in [\d.]+ s\nRows and [^\n]+:\n( {2}\w+: \d+ [0-9a-f]{16}\n)+Counters: /,
      );
      expect(stdout).toContain('  users: 4 ');
      expect(stdout).toContain('\nNext:\n  1. Stop the server');
      expect(stdout).toContain('ENCRYPTION_KEY as it is');
      expect(stdout + readFileSync(join(dataDir, 'moved.json'), 'utf8')).not.toMatch(
        /hidden-4711|postgres:\/\/|f0e1d2/,
      );
    }));

  it('while a server runs: reads and tokens go on, writes are 503, and nothing is lost or written later (CLI-31, STORE-12, STORE-16)', () =>
    withDirectory(async (directory) => {
      const dataDir = join(directory, 'data');
      const server = await ServerProcess.start({ ...embedded, DATA_DIR: dataDir, RATE_LIMIT: 'off' });
      const session = await server.setUp();
      const made = await server.call('POST', '/personal-access-tokens', { token: session, body: { name: 'x' } });
      const token: string = made.body.token.accessToken;
      const write = async (name: string) => {
        const response = await fetch(`${server.url}/api/v1/userGroups`, {
          method: 'POST',
          headers: { authorization: `Bearer ${session}`, 'content-type': 'application/json' },
          body: JSON.stringify({ name, type: 'custom' }),
        });
        await response.text();
        return { status: response.status, retryAfter: response.headers.get('retry-after') };
      };
      const read = async () => (await server.call('GET', '/org', { token })).status;
      const health = async () => (await fetch(`${server.url}/health/ready`)).status;
      expect(await write('before')).toMatchObject({ status: 201 });
      expect(await health()).toBe(200);

      const args = ['move', '--to', place.url, '--data-dir', dataDir];
      const move = watchedCommand({ args, files: join(directory, 'move'), stopAt: '^analyze' });
      await move.stopped();
      expect(await read()).toBe(200);
      const during = write('during');
      expect(await read()).toBe(200);
      expect(await during).toEqual({ status: 503, retryAfter: '5' });
      expect(await read()).toBe(200);
      move.signal('SIGCONT');
      expect(await move.end).toMatchObject({ code: 0, stderr: '' });

      expect(await read()).toBe(200);
      expect(await write('after')).toEqual({ status: 503, retryAfter: '5' });
      expect(await health()).toBe(503);
      expect((await server.end('SIGTERM')).code).toBe(0);
      const again = await ServerProcess.startAndEnd({ ...embedded, DATA_DIR: dataDir });
      expect({ code: again.code, stderr: again.stderr }).toEqual({
        code: 1,
        stderr: expect.stringMatching(
          /^latchkey: The store in DATA_DIR \S+ was moved to [^\n]+ latchkey move --back\n$/,
        ),
      });

      const environment = {
        DATABASE_URL: place.url,
        ENCRYPTION_KEY: '',
        ENCRYPTION_KEY_FILE: join(dataDir, 'encryption-key'),
      };
      const node = await ServerProcess.start({ ...environment, DATA_DIR: join(directory, 'node'), RATE_LIMIT: 'off' });
      expect((await node.call('GET', '/org', { token })).status).toBe(200);
      const groups = await node.call('GET', '/userGroups?limit=100', { token: session });
      const names = groups.body.groups.map(({ name }: { name: string }) => name);
      expect(names).toContain('before');
      for (const name of ['during', 'after']) expect(names).not.toContain(name);
      expect((await node.end('SIGTERM')).code).toBe(0);
    }));

  it('1: notices any difference, and then the embedded store stays in use (CLI-30, CLI-32, STORE-17)', () =>
    withDirectory(async (directory) => {
      const dataDir = join(directory, 'data');
      await latchkeyJson('seed', '--users', '20', '--data-dir', dataDir);
      const args = ['move', '--to', place.url, '--data-dir', dataDir];
      const environment = { ENCRYPTION_KEY: key };
      const move = watchedCommand({ args, environment, files: join(directory, 'move'), stopAt: '^analyze' });
      await move.stopped();
      await place.run("update users set full_name = full_name || 'x' where id = (select min(id) from users)");
      move.signal('SIGCONT');
      const { code, stdout, stderr } = await move.end;
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toMatch(/^latchkey: The table users is not the same in the database: [^\n]+ Nothing was moved\n$/);
      expect((await latchkey(['org', 'status', '--data-dir', dataDir])).code).toBe(0);
      const started = await ServerProcess.startAndEnd({ DATABASE_URL: place.url, DATA_DIR: join(directory, 'node') });
      expect(started).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/^latchkey: The store of DATABASE_URL is not whole, [^\n]+\n$/),
      });
    }));
});
