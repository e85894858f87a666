import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { passwordHasher } from '../../server/src/access/passwords.ts';
import { leaveFirstRelease, raw, rowsOf } from '../../server/test/support/first-release.ts';
import { secondConnection } from '../../server/test/support/second-connection.ts';
import { ensureServerIsBuilt, ServerProcess, withDirectory } from '../../server/test/support/server-process.ts';
import { password } from '../../server/test/support/test-app.ts';
import { latchkey, latchkeyJson } from './command-process.ts';

beforeAll(ensureServerIsBuilt);
vi.setConfig({ testTimeout: 60_000 });

/** Every row of a store. */
function stored(dataDir: string) {
  const connection = secondConnection({ dataDir });
  try {
    return rowsOf(connection);
  } finally {
    connection.close();
  }
}

describe('latchkey migrate', () => {
  it('0: brings the store of the first release to this schema, losing nothing, and then has nothing to do (CLI-13, STORE-9)', () =>
    withDirectory(async (dataDir) => {
      const { hash } = await passwordHasher();
      const before = leaveFirstRelease(dataDir, await hash(password));
      // What other commands say until then.
      const needed = await latchkey(['token', 'list', '--data-dir', dataDir]);
      expect(needed.code).toBe(1);
      expect(needed.stderr).toMatch(/^latchkey: The store has schema 1, [^\n]+ or run latchkey migrate\n$/);
      expect(stored(dataDir)).toEqual(before);

      const { schema } = await latchkeyJson('migrate', '--data-dir', dataDir);
      expect(schema).toEqual({ from: 1, to: expect.any(Number) });
      const after = stored(dataDir);
      expect(after['schema_migrations']).toHaveLength(schema.to);
      for (const [table, rows] of Object.entries(before)) {
        if (table === 'schema_migrations') continue;
        expect([table, after[table]]).toEqual([table, rows.map((row) => expect.objectContaining(row))]);
      }
      expect(await latchkey(['migrate', '--data-dir', dataDir])).toEqual({
        code: 0,
        signal: null,
        stdout: `The store has schema ${schema.to} already\n`,
        stderr: '',
      });
      expect(stored(dataDir)).toEqual(after);

      const { total } = await latchkeyJson('token', 'list', '--data-dir', dataDir, '--limit', '1');
      expect(total).toBeGreaterThan(1);
      const server = await ServerProcess.start({ DATA_DIR: dataDir, RATE_LIMIT: 'off' });
      expect((await server.call('GET', '/org', { token: raw.forever })).status).toBe(200);
      expect((await server.call('POST', '/org', { body: {} })).status).toBe(409);
      expect((await server.end('SIGTERM')).code).toBe(0);
    }));

  it('0: tells in words from where to where', () =>
    withDirectory(async (dataDir) => {
      leaveFirstRelease(dataDir, 'no hash');
      const { code, stdout, stderr } = await latchkey(['migrate'], { environment: { DATA_DIR: dataDir } });
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(stdout).toMatch(/^The store was brought from schema 1 to \d+\n$/);
    }));

  it('1: touches nothing while a server holds the directory, and holds it against a server (CLI-13, STORE-11)', () =>
    withDirectory(async (dataDir) => {
      const server = await ServerProcess.start({ DATA_DIR: dataDir });
      const before = stored(dataDir);
      const { code, stdout, stderr } = await latchkey(['migrate', '--data-dir', dataDir]);
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toMatch(/^latchkey: Another server is using DATA_DIR [^\n]+\n$/);
      expect(stored(dataDir)).toEqual(before);
      expect((await server.call('GET', '/org/exists')).status).toBe(200);
      await server.end('SIGTERM');
      expect((await latchkey(['migrate', '--data-dir', dataDir])).code).toBe(0);
    }));

  it('1: makes no store, and leaves one of a newer release alone (CLI-7, STORE-10)', () =>
    withDirectory(async (directory) => {
      const missing = join(directory, 'missing');
      const { code, stderr } = await latchkey(['migrate', '--data-dir', missing]);
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: `latchkey: DATA_DIR ${missing} holds no store (latchkey.db): give the directory that the server uses\n`,
      });
      expect(existsSync(missing)).toBe(false);
      expect((await latchkey(['migrate', '--data-dir', directory])).code).toBe(1);
      expect(readdirSync(directory)).toEqual([]);
      leaveFirstRelease(directory, 'no hash');
      const connection = secondConnection({ dataDir: directory });
      connection.exec("INSERT INTO schema_migrations VALUES (99, 'later', 0)");
      connection.close();
      const before = stored(directory);
      const newer = await latchkey(['migrate', '--data-dir', directory]);
      expect(newer.code).toBe(1);
      expect(newer.stderr).toMatch(
        /^latchkey: The store has schema 99, [^\n]+: start the newer release that wrote it\n$/,
      );
      expect(stored(directory)).toEqual(before);
    }));
});
