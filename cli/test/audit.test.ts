import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { encryptionKeyFile, makeEncryptionKey, writeEncryptionKey } from '../../server/src/keys/encryption.ts';
import { secondConnection } from '../../server/test/support/second-connection.ts';
import {
  ensureServerIsBuilt,
  readStore,
  ServerProcess,
  withDirectory,
} from '../../server/test/support/server-process.ts';
import { latchkey, latchkeyJson } from './command-process.ts';

beforeAll(ensureServerIsBuilt);
vi.setConfig({ testTimeout: 60_000 });

/** A store with some records, and no server. */
async function withLog(work: (dataDir: string) => Promise<void>): Promise<void> {
  await withDirectory(async (dataDir) => {
    await latchkeyJson('seed', '--users', '30', '--data-dir', dataDir, '--print-token');
    await work(dataDir);
  });
}

function write(dataDir: string, ...statements: readonly string[]): void {
  const store = secondConnection({ dataDir });
  for (const sql of statements) store.prepare(sql).run();
  store.close();
}

describe('latchkey audit verify', () => {
  it('0: a sound log, with the head to note; 1: one that is not the noted one, or does not reach it (AUDIT-11)', () =>
    withLog(async (dataDir) => {
      const at = ['--data-dir', dataDir];
      const { ok, records, head } = await latchkeyJson('audit', 'verify', ...at);
      const last = readStore(dataDir, 'SELECT sequence, hash FROM audit_log ORDER BY sequence').at(-1);
      expect({ ok, records, head }).toEqual({ ok: true, records: last.sequence, head: last });
      const printed = `${head.sequence}:${head.hash}`;
      const { code, stdout, stderr } = await latchkey(['audit', 'verify', ...at]);
      expect({ code, stdout, stderr }).toEqual({
        code: 0,
        stdout: `The audit log is sound: ${records} records\n${printed}\n`,
        stderr: '',
      });
      await latchkeyJson('audit', 'verify', ...at, '--expect', printed.toUpperCase());
      const other = await latchkey(['audit', 'verify', ...at, '--expect', `${head.sequence}:${'0'.repeat(64)}`]);
      expect(other).toMatchObject({
        code: 1,
        stdout: '',
        stderr: `latchkey: The audit log is broken at record ${head.sequence}: it is consistent, but not the one that was noted: the log was rewritten\n`,
      });
      const further = await latchkey(['audit', 'verify', ...at, '--expect', `${head.sequence + 1}:${head.hash}`]);
      expect(further).toMatchObject({
        code: 1,
        stderr: expect.stringContaining(`broken at record ${head.sequence + 1}`),
      });
    }));

  it('1: one clear line names the first broken record, in JSON too (AUDIT-11)', () =>
    withLog(async (dataDir) => {
      write(dataDir, "UPDATE audit_log SET details = '{}' WHERE sequence = 2");
      const message = 'The audit log is broken at record 2: its network, details or changes were changed';
      const args = ['audit', 'verify', '--data-dir', dataDir];
      expect(await latchkey(args)).toMatchObject({ code: 1, stdout: '', stderr: `latchkey: ${message}\n` });
      const { code, stdout, stderr } = await latchkey([...args, '--json']);
      expect([code, stdout]).toEqual([1, '']);
      const broken = { sequence: 2, fault: 'content' };
      expect(JSON.parse(stderr)).toEqual({ error: { code: 'FAILED', message, broken } });
    }));

  it('2: an expectation that is none', async () => {
    for (const given of ['12', `x:${'0'.repeat(64)}`, `12:${'0'.repeat(63)}`]) {
      const { code, stderr } = await latchkey(['audit', 'verify', '--expect', given]);
      expect([code, stderr]).toEqual([2, expect.stringContaining('--expect must be a number and a hash')]);
    }
  });

  it('0: while a server runs that goes on writing, whose log it does not change (AUDIT-11, CLI-7)', () =>
    withDirectory(async (dataDir) => {
      const server = await ServerProcess.start({ DATA_DIR: dataDir, RATE_LIMIT: 'off' });
      const token = await server.setUp();
      const over = new AbortController();
      const writing = (async () => {
        for (let number = 0; !over.signal.aborted; number += 1) {
          const body = { name: `group ${number}`, type: 'custom' };
          expect((await server.call('POST', '/userGroups', { token, body })).status).toBe(201);
        }
      })();
      for (let run = 0; run < 3; run += 1) {
        const { records, head } = await latchkeyJson('audit', 'verify', '--data-dir', dataDir);
        const [row] = readStore(dataDir, `SELECT hash FROM audit_log WHERE sequence = ${records}`);
        expect(row.hash).toBe(head.hash);
      }
      over.abort();
      await writing;
      expect((await server.end('SIGTERM')).code).toBe(0);
    }));
});

describe('latchkey audit export', () => {
  it('0: the whole log into a new file of its owner alone; 1: into one that is there (AUDIT-13)', () =>
    withLog(async (dataDir) => {
      const [lines, csv] = [join(dataDir, 'audit.jsonl'), join(dataDir, 'audit.csv')];
      const rows = readStore(dataDir, 'SELECT hash FROM audit_log ORDER BY sequence');
      const { exported } = await latchkeyJson('audit', 'export', '--data-dir', dataDir, '--file', lines);
      expect(exported).toEqual({ file: lines, format: 'jsonl', records: rows.length });
      const written = readFileSync(lines, 'utf8').trim().split('\n');
      expect(written.map((line) => JSON.parse(line).hash)).toEqual(rows.map(({ hash }) => hash));
      expect(statSync(lines).mode & 0o777).toBe(0o600);
      const args = ['audit', 'export', '--data-dir', dataDir, '--format', 'csv', '--file'];
      expect(await latchkey([...args, csv])).toMatchObject({
        code: 0,
        stdout: `Wrote ${rows.length} records to ${csv}\n`,
      });
      expect(readFileSync(csv, 'utf8')).toMatch(/^sequence,id,/);
      expect(await latchkey([...args, lines])).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('exists already'),
      });
      expect(readFileSync(lines, 'utf8').trim().split('\n')).toEqual(written);
    }));
});

describe('latchkey audit archive', () => {
  it('0: the records before a date, in a new file, and removed where that is wanted; the rest is proved (AUDIT-19)', () =>
    withLog(async (dataDir) => {
      const at = ['--data-dir', dataDir];
      const { head, records } = await latchkeyJson('audit', 'verify', ...at);
      const [none, all, again] = ['none', 'all', 'again'].map((name) => join(dataDir, `${name}.jsonl`)) as [
        string,
        string,
        string,
      ];
      const archive = (before: string, to: string, ...more: readonly string[]) =>
        latchkeyJson('audit', 'archive', ...at, '--before', before, '--to', to, ...more);
      expect((await archive('2020-01-01', none)).archived).toEqual({ file: none, records: 0, removed: 0 });
      expect((await archive('2999-01-01', all)).archived).toEqual({ file: all, records, removed: 0 });
      const written = readFileSync(all, 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
      expect(written.map(({ sequence }) => sequence)).toEqual(Array.from({ length: records }, (_, place) => place + 1));
      expect([written.at(-1).hash, statSync(all).mode & 0o777]).toEqual([head.hash, 0o600]);
      const remove = ['audit', 'archive', ...at, '--before', '2999-01-01', '--to', again, '--remove'];
      expect(await latchkey(remove)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('ENCRYPTION_KEY is missing'),
      });
      writeEncryptionKey(join(dataDir, encryptionKeyFile), makeEncryptionKey());
      expect(await latchkeyJson(...remove)).toMatchObject({ archived: { records, removed: records } });
      expect(readFileSync(again, 'utf8')).toBe(readFileSync(all, 'utf8'));
      expect(await latchkeyJson('audit', 'verify', ...at)).toMatchObject({ ok: true, records: 1, removed: records });
      writeEncryptionKey(join(dataDir, encryptionKeyFile), makeEncryptionKey());
      expect(await latchkey(['audit', 'verify', ...at])).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('was not signed with this ENCRYPTION_KEY'),
      });
      expect(await latchkey(['audit', 'archive', ...at, '--before', 'soon', '--to', none])).toMatchObject({ code: 2 });
    }));
});

describe('latchkey user erase', () => {
  it('0: a deleted user, whom the log is sound without; 3: anyone else, or without a yes (AUDIT-14)', () =>
    withDirectory(async (dataDir) => {
      const server = await ServerProcess.start({ DATA_DIR: dataDir, RATE_LIMIT: 'off' });
      const token = await server.setUp();
      const body = { fullName: 'Grace Hopper4711', email: 'grace@example.com' };
      const { _id: id } = (await server.call('POST', '/users', { token, body })).body;
      const { head } = await latchkeyJson('audit', 'verify', '--data-dir', dataDir);
      const args = ['user', 'erase', '--data-dir', dataDir, '--user', id];
      const refused = (message: string) => ({ code: 3, stdout: '', stderr: `latchkey: ${message}\n` });
      expect(await latchkey([...args, '--yes'])).toMatchObject(
        refused('The user is not deleted: delete the user first'),
      );
      expect((await server.call('DELETE', `/users/${id}`, { token })).status).toBe(200);
      expect(await latchkey(args)).toMatchObject(
        refused('Erasing cannot be undone: confirm it with --yes, or at a terminal'),
      );
      expect(readStore(dataDir, 'SELECT full_name FROM users').map(({ full_name }) => full_name)).toContain(
        body.fullName,
      );
      const { erased } = await latchkeyJson(...args, '--yes');
      expect(erased).toEqual({ userId: id, records: 2, events: 2 });
      expect(await latchkey([...args, '--yes'])).toMatchObject(refused('The data of this user was erased already'));
      const unknown = ['user', 'erase', '--data-dir', dataDir, '--user', '0'.repeat(24)];
      expect(await latchkey(unknown)).toMatchObject(refused('There is no such user'));
      expect((await server.call('POST', `/users/${id}/restore`, { token })).status).toBe(404);
      await latchkeyJson('audit', 'verify', '--data-dir', dataDir, '--expect', `${head.sequence}:${head.hash}`);
      expect((await server.end('SIGTERM')).code).toBe(0);
      const tables = ['users', 'audit_log', 'outbox', 'sessions', 'personal_access_tokens'];
      for (const table of tables) {
        const rows = JSON.stringify(readStore(dataDir, `SELECT * FROM ${table}`));
        for (const text of ['Hopper4711', 'grace@example.com'])
          expect([table, rows]).toEqual([table, expect.not.stringContaining(text)]);
      }
    }));
});
