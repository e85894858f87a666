import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { ensureServerIsBuilt, withDirectory } from '../../server/test/support/server-process.ts';
import { latchkey, latchkeyJson } from './command-process.ts';
import { query, serverOn, signIn } from './restored.ts';

beforeAll(ensureServerIsBuilt);
vi.setConfig({ testTimeout: 60_000 });

const warning =
  'It contains the keys too: anyone who has this file can sign as this instance. Keep it as secret as a password.';

/** A store with some users and no server, and a directory next to it for back-ups. */
async function withStore(work: (dataDir: string, backups: string) => Promise<void>): Promise<void> {
  await withDirectory(async (directory) => {
    const [dataDir, backups] = [join(directory, 'data'), join(directory, 'backups')];
    mkdirSync(backups);
    await latchkeyJson('seed', '--users', '30', '--data-dir', dataDir, '--print-token');
    await work(dataDir, backups);
  });
}

describe('latchkey backup', () => {
  it('0: one file of its owner alone, whole and consistent, while a server runs that goes on writing (CLI-24)', () =>
    withDirectory(async (directory) => {
      const [dataDir, copy, file] = [join(directory, 'data'), join(directory, 'copy'), join(directory, 'one.lkb')];
      await latchkeyJson('seed', '--users', '5000', '--data-dir', dataDir, '--password-file', passwordFile(directory));
      const server = await serverOn(dataDir);
      const { accessToken: token } = (await signIn(server, 'admin@example.com')).body;
      const over = new AbortController();
      let written = 0;
      const writing = (async () => {
        for (let number = 0; !over.signal.aborted; number += 1) {
          const body = { name: `group ${number}`, type: 'custom' };
          expect((await server.call('POST', '/userGroups', { token, body })).status).toBe(201);
          written = number + 1;
        }
      })();
      await vi.waitUntil(() => written > 5);
      const before = written;
      const { backup } = await latchkeyJson('backup', '--to', file, '--data-dir', dataDir);
      const after = written + 1;
      over.abort();
      await writing;
      expect((await server.end('SIGTERM')).code).toBe(0);
      expect(after).toBeGreaterThan(before + 1);
      expect(backup).toMatchObject({ file, users: 5_001, keys: ['signing-keys.json', 'encryption-key'] });
      expect([statSync(file).mode & 0o777, statSync(file).size]).toEqual([0o600, backup.bytes]);
      expect(readdirSync(directory).filter((name) => name.includes('one.lkb'))).toEqual(['one.lkb']);

      await latchkeyJson('restore', '--from', file, '--data-dir', copy, '--without-journal', '--revoke', 'none');
      const counted = query(
        copy,
        "SELECT count(*) AS count FROM user_groups WHERE type = 'custom' AND name LIKE 'group %'",
      );
      expect(counted[0].count).toBeGreaterThanOrEqual(before);
      expect(counted[0].count).toBeLessThanOrEqual(after);
      const created = query(copy, "SELECT count(*) AS count FROM audit_log WHERE action = 'group.created'");
      expect(created[0].count).toBe(counted[0].count);
      await latchkeyJson('audit', 'verify', '--data-dir', copy);
      expect(readFileSync(join(copy, 'signing-keys.json'))).toEqual(readFileSync(join(dataDir, 'signing-keys.json')));
    }));

  it('0: tells loudly that the keys are in it, or not with --without-keys (CLI-25)', () =>
    withStore(async (dataDir, backups) => {
      const secret = JSON.parse(readFileSync(join(dataDir, 'signing-keys.json'), 'utf8')).keys[0].d as string;
      const [full, bare] = [join(backups, 'full.lkb'), join(backups, 'bare.lkb')];
      const told = await latchkey(['backup', '--to', full, '--data-dir', dataDir]);
      expect(told).toMatchObject({ code: 0, stderr: '', stdout: expect.stringContaining(warning) });
      expect(readFileSync(full, 'latin1')).toContain(secret);
      const without = await latchkey(['backup', '--to', bare, '--data-dir', dataDir, '--without-keys']);
      expect(without).toMatchObject({ code: 0, stdout: expect.stringContaining('It holds no keys') });
      expect(readFileSync(bare, 'latin1')).not.toContain(secret);
    }));

  it('3: a file that is there stays, unless --force replaces it (CLI-24)', () =>
    withStore(async (dataDir, backups) => {
      const file = join(backups, 'kept.lkb');
      writeFileSync(file, 'something else');
      const args = ['backup', '--to', file, '--data-dir', dataDir];
      expect(await latchkey(args)).toMatchObject({
        code: 3,
        stdout: '',
        stderr: `latchkey: ${file} is there already: --force replaces it\n`,
      });
      expect(readFileSync(file, 'utf8')).toBe('something else');
      await latchkeyJson(...args, '--force');
      expect(statSync(file).size).toBeGreaterThan(10_000);
      expect(readdirSync(backups)).toEqual(['kept.lkb']);
    }));

  it('1: a damaged store is not backed up, and the back-up of before stays (CLI-24)', () =>
    withStore(async (dataDir, backups) => {
      const [file, store] = [join(backups, 'kept.lkb'), join(dataDir, 'latchkey.db')];
      await latchkeyJson('backup', '--to', file, '--data-dir', dataDir);
      const before = readFileSync(file);
      const bytes = readFileSync(store);
      bytes.fill(0x5a, 3 * 4_096, 40 * 4_096);
      writeFileSync(store, bytes);
      const { code, stdout, stderr } = await latchkey(['backup', '--to', file, '--data-dir', dataDir, '--force']);
      expect([code, stdout]).toEqual([1, '']);
      expect(stderr).toMatch(/^latchkey: The store [^\n]+ is damaged[^\n]*\n$/);
      expect(readFileSync(file).equals(before)).toBe(true);
      expect(readdirSync(backups)).toEqual(['kept.lkb']);
    }));

  it('1 and 2: no store, no directory, no file; nothing is made (CLI-24, CLI-6)', () =>
    withStore(async (dataDir, backups) => {
      const missing = join(backups, 'missing');
      const none = await latchkey(['backup', '--to', join(backups, 'x.lkb'), '--data-dir', missing]);
      expect(none).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/^latchkey: DATA_DIR [^\n]+ holds no store [^\n]+\n$/),
      });
      const nowhere = await latchkey(['backup', '--to', join(missing, 'x.lkb'), '--data-dir', dataDir]);
      expect(nowhere).toMatchObject({ code: 1, stderr: `latchkey: The directory ${missing} is not there\n` });
      expect((await latchkey(['backup', '--to', backups, '--data-dir', dataDir])).code).toBe(2);
      expect((await latchkey(['backup', '--data-dir', dataDir])).code).toBe(2);
      expect([readdirSync(backups), existsSync(missing)]).toEqual([[], false]);
    }));

  it('3: with DATABASE_URL both name the tool of PostgreSQL (CLI-25)', async () => {
    const environment = {
      DATABASE_URL: 'postgres://ada:secret-4711@localhost/latchkey',
      ENCRYPTION_KEY: '0123456789abcdef'.repeat(4),
    };
    const made = await latchkey(['backup', '--to', '/backups/one.dump'], { environment });
    expect(made).toMatchObject({
      code: 3,
      stderr: expect.stringContaining('pg_dump --format=custom --file=/backups/one.dump "$DATABASE_URL"'),
    });
    const put = await latchkey(['restore', '--from', '/backups/one.dump'], { environment });
    expect(put).toMatchObject({ code: 3, stderr: expect.stringContaining('pg_restore --clean') });
    expect(made.stderr + put.stderr).not.toContain('4711');
  });
});

function passwordFile(directory: string): string {
  const file = join(directory, 'password');
  writeFileSync(file, 'Marble-Kettle-7');
  return file;
}
