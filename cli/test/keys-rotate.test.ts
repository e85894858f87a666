import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { ensureServerIsBuilt, ServerProcess, withDirectory } from '../../server/test/support/server-process.ts';
import { organization } from '../../server/test/support/test-app.ts';
import { latchkey, latchkeyJson } from './command-process.ts';
import { keyText, kids, leaveStore, smtp, startOn } from './rotated-keys.ts';

beforeAll(ensureServerIsBuilt);
vi.setConfig({ testTimeout: 120_000 });

function actions(dataDir: string): readonly unknown[] {
  const store = new Sqlite(join(dataDir, 'latchkey.db'), { readonly: true });
  try {
    return store.prepare('SELECT action FROM audit_log ORDER BY sequence').pluck().all();
  } finally {
    store.close();
  }
}

describe('latchkey keys rotate', () => {
  it('0: while a server runs makes a new signing key, and a second time is refused (AUTH-59)', () =>
    withDirectory(async (dataDir) => {
      const server = await ServerProcess.start({ DATA_DIR: dataDir });
      expect((await server.call('POST', '/org', { body: organization })).status).toBe(200);
      const [first] = kids(dataDir);
      const { signing } = await latchkeyJson('keys', 'rotate', '--data-dir', dataDir);
      expect(signing).toEqual({ kid: expect.any(String), signsFrom: expect.any(String), kept: 1, dropped: 0 });
      expect(kids(dataDir)).toEqual([signing.kid, first]);
      const again = await latchkey(['keys', 'rotate', '--data-dir', dataDir]);
      expect(again).toMatchObject({ code: 3, stdout: '' });
      expect(again.stderr).toMatch(/^latchkey: The key of the last rotation does not sign yet[^\n]+\n$/);
      expect((await server.end('SIGTERM')).code).toBe(0);
      expect(actions(dataDir)).toContain('keys.signing-rotated');
    }));

  it('3: refuses what has no key of its own to rotate, 2: options that say nothing (AUTH-59, CLI-6)', () =>
    withDirectory(async (dataDir) => {
      await leaveStore(dataDir);
      const before = kids(dataDir);
      const environment = { JWT_ALGORITHM: 'HS256', JWT_SECRET: 'tests-sign-with-this-one-0815-4711' };
      const shared = await latchkey(['keys', 'rotate', '--data-dir', dataDir], { environment });
      expect(shared).toMatchObject({ code: 3, stdout: '' });
      expect(shared.stderr).toContain('the key is JWT_SECRET');
      expect(shared.stderr).not.toContain(environment.JWT_SECRET);
      expect((await latchkey(['keys', 'rotate', '--nodes-stopped', '--data-dir', dataDir])).code).toBe(2);
      const input = ['keys', 'rotate', '--encryption', '--new-key-file', '/nowhere', '--data-dir', dataDir];
      expect((await latchkey(input)).code).toBe(2);
      expect(kids(dataDir)).toEqual(before);
    }));
});

describe('latchkey keys rotate --encryption', () => {
  it('0: gives the data directory another key, while no server runs (AUDIT-15)', () =>
    withDirectory(async (dataDir) => {
      const { token } = await leaveStore(dataDir);
      const before = keyText(dataDir);
      const server = await ServerProcess.start({ DATA_DIR: dataDir });
      const beside = await latchkey(['keys', 'rotate', '--encryption', '--data-dir', dataDir]);
      expect(beside).toMatchObject({ code: 1, stdout: '' });
      expect(beside.stderr).toMatch(/^latchkey: Another server is using DATA_DIR [^\n]+\n$/);
      expect(keyText(dataDir)).toBe(before);
      await server.end('SIGTERM');
      const { code, stdout, stderr } = await latchkey(['keys', 'rotate', '--encryption', '--data-dir', dataDir]);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      const after = keyText(dataDir);
      expect(after).not.toBe(before);
      for (const key of [before, after]) expect(stdout).not.toContain(key);
      expect(await startOn(dataDir, token)).toMatchObject({ mailPassword: smtp.password, status: 200 });
    }));

  it('0: takes the new key from a file where ENCRYPTION_KEY holds the present one (AUDIT-15, CONFIG-7)', () =>
    withDirectory(async (dataDir) => {
      const { token } = await leaveStore(dataDir);
      const present = keyText(dataDir);
      const next = '9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08';
      const file = join(dataDir, 'new-key');
      writeFileSync(file, `${next}\n`, { mode: 0o600 });
      const args = ['keys', 'rotate', '--encryption', '--data-dir', dataDir];
      const environment = { ENCRYPTION_KEY: present };
      expect((await latchkey(args, { environment })).code).toBe(2);
      const same = { environment: { ENCRYPTION_KEY: next.toUpperCase() } };
      expect((await latchkey([...args, '--new-key-file', file], same)).code).toBe(3);
      const done = await latchkey([...args, '--new-key-file', file], { environment });
      expect(done).toMatchObject({ code: 0, stderr: '' });
      expect(done.stdout).toContain('Set ENCRYPTION_KEY to the new key now.');
      expect(done.stdout).not.toContain(next);
      const withKey = (key: string) => startOn(dataDir, token, { ENCRYPTION_KEY: key });
      expect(await withKey(next)).toMatchObject({ mailPassword: smtp.password, status: 200 });
      expect(await withKey(present)).toMatchObject({ mailPassword: null, status: 200 });
    }));
});
