import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { embeddedStore } from '../../server/test/support/embedded-store.ts';
import { leaveFirstRelease } from '../../server/test/support/first-release.ts';
import { ensureServerIsBuilt, withDirectory } from '../../server/test/support/server-process.ts';
import { latchkey, latchkeyJson } from './command-process.ts';
import { query, serverOn, tablesAt } from './restored.ts';

beforeAll(ensureServerIsBuilt);
vi.setConfig({ testTimeout: 120_000 });

interface Place {
  readonly directory: string;
  readonly dataDir: string;
  /** A back-up of the store that is in `dataDir`. */
  readonly file: string;
}

async function withBackup(work: (place: Place) => Promise<void>): Promise<void> {
  await withDirectory(async (directory) => {
    const [dataDir, file] = [join(directory, 'data'), join(directory, 'one.lkb')];
    await latchkeyJson('seed', '--users', '20', '--tokens', '5', '--print-token', '--data-dir', dataDir);
    await latchkeyJson('backup', '--to', file, '--data-dir', dataDir);
    await work({ directory, dataDir, file });
  });
}

/** Names in a directory, except the lock, which holds no data. */
const namesIn = (dataDir: string) =>
  readdirSync(dataDir).filter((name) => !['server.lock', 'last-start.json'].includes(name));

describe('latchkey restore', () => {
  it('1: what is no back-up, cut short, damaged or newer changes nothing, each with one clear line (CLI-26)', () =>
    withBackup(async ({ directory, dataDir, file }) => {
      const whole = readFileSync(file);
      const turned = Buffer.from(whole);
      const middle = Math.floor(whole.length / 2);
      turned.writeUInt8(turned.readUInt8(middle) ^ 1, middle);
      const newer = join(directory, 'newer');
      cpSync(dataDir, newer, { recursive: true });
      const store = embeddedStore(newer);
      store.exec("INSERT INTO schema_migrations VALUES (99, 'later', 0)");
      store.close();
      await latchkeyJson('backup', '--to', join(directory, 'newer.lkb'), '--data-dir', newer);
      const before = { tables: tablesAt(dataDir), names: namesIn(dataDir) };
      const cases: readonly (readonly [string, Buffer, RegExp])[] = [
        ['missing', Buffer.alloc(0), /cannot be read: ENOENT/],
        ['empty', Buffer.alloc(0), /is no back-up of Latchkey/],
        ['text', Buffer.from('something else '.repeat(1_000)), /is no back-up of Latchkey/],
        ['short', whole.subarray(0, whole.length - 10_000), /without the checksum of a back-up: it is incomplete/],
        ['store', readFileSync(join(dataDir, 'latchkey.db')), /not created by latchkey backup/],
        ['damaged', turned, /is damaged: its checksum does not match/],
        ['newer', readFileSync(join(directory, 'newer.lkb')), /has schema 99, this release knows \d+: restore it with/],
      ];
      for (const [name, bytes, told] of cases) {
        const given = join(directory, `${name}.given`);
        if (name !== 'missing') writeFileSync(given, bytes);
        const { code, stdout, stderr } = await latchkey(['restore', '--from', given, '--data-dir', dataDir]);
        expect([name, code, stdout, stderr]).toEqual([name, 1, '', expect.stringMatching(/^latchkey: [^\n]+\n$/)]);
        expect(stderr).toMatch(told);
        expect({ tables: tablesAt(dataDir), names: namesIn(dataDir) }).toEqual(before);
      }
    }));

  it('1: not while a server runs, nor while a command uses the store (CLI-26)', () =>
    withBackup(async ({ dataDir, file }) => {
      const args = ['restore', '--from', file, '--data-dir', dataDir];
      const server = await serverOn(dataDir);
      const beside = await latchkey(args);
      expect(beside).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/^latchkey: Another server is using [^\n]+\n$/),
      });
      expect((await server.end('SIGTERM')).code).toBe(0);
      const other = embeddedStore(dataDir);
      other.pragma('journal_mode = WAL');
      other.exec('BEGIN; SELECT * FROM users');
      const used = await latchkey(args);
      other.close();
      expect(used).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(/^latchkey: Another command is using [^\n]+\n$/),
      });
      expect(query(dataDir, "SELECT * FROM audit_log WHERE action = 'store.restored'")).toEqual([]);
    }));

  it('3: a back-up of an earlier schema takes --migrate (CLI-26)', () =>
    withDirectory(async (directory) => {
      const [dataDir, file] = [join(directory, 'data'), join(directory, 'one.lkb')];
      mkdirSync(dataDir);
      leaveFirstRelease(dataDir, 'no hash');
      await latchkeyJson('backup', '--to', file, '--data-dir', dataDir);
      const args = ['restore', '--from', file, '--data-dir', dataDir];
      const told = await latchkey(args);
      expect(told).toMatchObject({
        code: 3,
        stderr: expect.stringMatching(/^latchkey: The back-up has schema 1, [^\n]+--migrate[^\n]+\n$/),
      });
      expect(query(dataDir, 'SELECT max(version) AS version FROM schema_migrations')).toEqual([{ version: 1 }]);
      const { restored } = await latchkeyJson(...args, '--migrate');
      expect(restored.carried.ended).toMatchObject({ tokensRevoked: 0, sessionsEnded: 0, usersDeleted: 0 });
      expect((await latchkey(['audit', 'verify', '--data-dir', dataDir])).code).toBe(0);
    }));

  it('3: where the store is gone nothing is restored without --without-journal; --revoke ends what might have ended, and has to be said (CLI-29, CLI-28, CRED-7)', () =>
    withBackup(async ({ directory, file }) => {
      const fresh = join(directory, 'fresh');
      const args = ['restore', '--from', file, '--data-dir', fresh];
      const told = await latchkey(args);
      expect(told).toMatchObject({
        code: 3,
        stdout: '',
        stderr: expect.stringMatching(
          /^latchkey: There is no record of what ended since [^\n]+ holds no store\)[^\n]+--revoke[^\n]+\n$/,
        ),
      });
      expect(namesIn(fresh)).toEqual([]);
      const unsaid = await latchkey([...args, '--without-journal']);
      expect(unsaid).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('needs --revoke') });
      expect(namesIn(fresh)).toEqual([]);
      const said = await latchkey([...args, '--without-journal', '--revoke', 'none']);
      expect(said).toMatchObject({
        code: 0,
        stdout: expect.stringContaining('credentials that ended since the back-up are valid again'),
      });
      expect(query(fresh, 'SELECT * FROM personal_access_tokens WHERE revoked_at IS NOT NULL')).toEqual([]);
      expect(existsSync(join(fresh, 'signing-keys.json'))).toBe(true);
      // Numbers of events that consumers may have seen since are given to no others.
      const [{ value }] = query(fresh, "SELECT value FROM counters WHERE name = 'event'");
      expect(value).toBe(1_000_000 + query(fresh, 'SELECT max(sequence) AS last FROM outbox')[0].last);

      rmSync(fresh, { recursive: true });
      const { restored } = await latchkeyJson(...args, '--without-journal', '--revoke', 'all');
      expect(restored).toMatchObject({ carried: null, revoked: { tokens: 6, passwords: 1 }, keptAside: null });
      expect(query(fresh, 'SELECT * FROM personal_access_tokens WHERE revoked_at IS NULL')).toEqual([]);
      expect(query(fresh, 'SELECT * FROM password_credentials')).toEqual([]);
      expect((await latchkey(['audit', 'verify', '--data-dir', fresh])).code).toBe(0);
    }));

  it('3: nor over a damaged store or that of another organization, which are kept aside then (CLI-29, CLI-26)', () =>
    withBackup(async ({ directory, dataDir, file }) => {
      const other = join(directory, 'other');
      await latchkeyJson('seed', '--users', '3', '--data-dir', other);
      const args = ['restore', '--from', file, '--data-dir'];
      const told = await latchkey([...args, other]);
      expect(told).toMatchObject({ code: 3, stderr: expect.stringContaining('another organization than the back-up') });
      expect(query(other, 'SELECT count(*) AS count FROM users')).toEqual([{ count: 4 }]);

      const store = join(dataDir, 'latchkey.db');
      writeFileSync(store, 'no store at all '.repeat(4_096));
      const damaged = await latchkey([...args, dataDir]);
      expect(damaged).toMatchObject({
        code: 3,
        stderr: expect.stringMatching(/^latchkey: There is no record of [^\n]+ is damaged[^\n]+\n$/),
      });
      const { restored } = await latchkeyJson(...args, dataDir, '--without-journal', '--revoke', 'none');
      expect(readFileSync(join(restored.keptAside, 'latchkey.db'), 'utf8')).toMatch(/^no store at all/);
      expect(query(dataDir, 'SELECT count(*) AS count FROM users')).toEqual([{ count: 21 }]);
    }));

  it('3: never in the place of another key, which stored settings would be lost with (CLI-26)', () =>
    withBackup(async ({ directory, dataDir }) => {
      const [file, fresh] = [join(directory, 'two.lkb'), join(directory, 'fresh')];
      writeFileSync(join(dataDir, 'encryption-key'), 'ab12'.repeat(16), { mode: 0o600 });
      await latchkeyJson('backup', '--to', file, '--data-dir', dataDir);
      mkdirSync(fresh);
      writeFileSync(join(fresh, 'encryption-key'), 'cd34'.repeat(16), { mode: 0o600 });
      const told = await latchkey([
        'restore',
        '--from',
        file,
        '--data-dir',
        fresh,
        '--without-journal',
        '--revoke',
        'none',
      ]);
      expect(told).toMatchObject({ code: 3, stderr: expect.stringContaining('is not the key of the back-up') });
      expect(namesIn(fresh)).toEqual(['encryption-key']);
    }));
});
