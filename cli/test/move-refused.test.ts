import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { embedded, leaveFullStore } from '../../server/test/support/full-store.ts';
import { PostgresPlace } from '../../server/test/support/postgres-place.ts';
import { ensureServerIsBuilt, ServerProcess, withDirectory } from '../../server/test/support/server-process.ts';
import { latchkey, latchkeyJson } from './command-process.ts';

beforeAll(ensureServerIsBuilt);
vi.setConfig({ testTimeout: 120_000 });

let place: PostgresPlace;
beforeEach(async () => {
  place = await PostgresPlace.make();
});
afterEach(() => place.remove());

const key = 'f0e1d2c3b4a5968778695a4b3c2d1e0f'.repeat(2);

describe('latchkey move changes nothing', () => {
  it('1 or 2: where it lacks an address, the encryption key, or an empty database (CLI-30, CLI-32)', () =>
    withDirectory(async (directory) => {
      const dataDir = join(directory, 'data');
      await latchkeyJson('seed', '--users', '3', '--data-dir', dataDir, '--print-token');
      const failed = async (args: string[], environment: Record<string, string> = { ENCRYPTION_KEY: key }) => {
        const { code, stdout, stderr } = await latchkey(['move', '--data-dir', dataDir, ...args], { environment });
        expect(stdout).toBe('');
        return `${code} ${stderr}`;
      };
      expect(await failed([])).toMatch(/^2 latchkey: name the database: --to, or DATABASE_URL\n$/);
      expect(await failed(['--to', 'mysql://here/x'])).toMatch(/^1 latchkey: --to is "mysql:[^\n]+\n$/);
      expect(await failed(['--to', place.url, '--back'])).toMatch(/^2 /);
      expect(await failed(['--to', place.url, '--yes'])).toMatch(/^2 /);
      expect(await failed(['--to', place.url], {})).toMatch(/^1 latchkey: ENCRYPTION_KEY is not set[^\n]+\n$/);
      const anonymous = place.url.replace(/:\d+\//, ':1/');
      expect(await failed(['--to', anonymous])).toMatch(
        /^1 latchkey: --to cannot be used \(127\.0\.0\.1:1, [^\n]+\): nothing listens at 127\.0\.0\.1:1 \(ECONNREFUSED\)[^\n]+\n$/,
      );
      expect(await place.run("select 1 from information_schema.tables where table_schema = 'public'")).toEqual([]);
      await place.run('create table writer (id integer primary key, mark bigint not null)');
      for (const force of [[], ['--force']]) {
        expect(await failed(['--to', place.url, ...force])).toMatch(
          /^1 latchkey: The database is not empty \(writer\)[^\n]+\n$/,
        );
      }
      expect((await latchkey(['org', 'status', '--data-dir', dataDir])).code).toBe(0);
    }));

  it('1: with another encryption key than the store has, or while that is changed (CLI-30)', () =>
    withDirectory(async (dataDir) => {
      await leaveFullStore(dataDir);
      const args = ['move', '--to', place.url, '--data-dir', dataDir];
      const another = await latchkey(args, { environment: { ENCRYPTION_KEY: key } });
      expect(another.code).toBe(1);
      expect(another.stderr).toMatch(
        /^latchkey: ENCRYPTION_KEY is not the one that the store is encrypted with[^\n]+\n$/,
      );
      writeFileSync(join(dataDir, 'encryption-key.next'), key, { mode: 0o600 });
      expect(await latchkey(args)).toMatchObject({ code: 1, stderr: expect.stringMatching(/has not ended: start/) });
      rmSync(join(dataDir, 'encryption-key.next'));
      writeFileSync(join(dataDir, 'signing-keys.json'), '{}', { mode: 0o600 });
      expect(await latchkey(args)).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/signing-keys.json is damaged/),
      });
      expect(await place.run("select 1 from information_schema.tables where table_schema = 'public'")).toEqual([]);
    }));
});

describe('latchkey move --back', () => {
  it('0: --back has the embedded store used again, 3: unless no one confirms it (CLI-32)', () =>
    withDirectory(async (dataDir) => {
      const { token } = await latchkeyJson('seed', '--users', '3', '--data-dir', dataDir, '--print-token');
      const back = ['move', '--back', '--data-dir', dataDir];
      expect((await latchkey([...back, '--yes'])).stderr).toMatch(/was not moved: it is in use\n$/);
      const args = ['move', '--to', place.url, '--data-dir', dataDir];
      expect((await latchkey(args, { environment: { ENCRYPTION_KEY: key } })).code).toBe(0);
      const twice = await latchkey(args, { environment: { ENCRYPTION_KEY: key } });
      expect(twice).toMatchObject({
        code: 3,
        stderr: expect.stringMatching(/ already: latchkey move --back [^\n]+\n$/),
      });
      expect(await latchkey(back)).toMatchObject({ code: 3, stdout: '' });
      expect((await latchkey(['org', 'status', '--data-dir', dataDir])).code).toBe(1);
      expect((await latchkey([...back, '--yes'])).code).toBe(0);
      expect(existsSync(join(dataDir, 'moved.json'))).toBe(false);
      const server = await ServerProcess.start({ ...embedded, DATA_DIR: dataDir, ENCRYPTION_KEY: key });
      expect((await server.call('GET', '/org', { token })).status).toBe(200);
      expect((await server.end('SIGTERM')).code).toBe(0);
      // Data that may have been written to the database since must not be deleted.
      const again = await latchkey([...args, '--force'], { environment: { ENCRYPTION_KEY: key } });
      expect(again).toMatchObject({ code: 1, stderr: expect.stringMatching(/The database is not empty/) });
    }));
});
