import {
  chmodSync,
  closeSync,
  copyFileSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { StartupError } from '../../src/base/errors.ts';
import { holdDataDir, prepareDataDir } from '../../src/db/files/data-dir.ts';
import { openSqlite } from '../../src/db/sqlite/sqlite.ts';
import { claimsOf } from '../support/sign-in.ts';
import { type Client, TestApp } from '../support/test-app.ts';

const email = 'ada@example.com';

describe('a data directory', () => {
  let app: TestApp;
  let admin: Client;
  let store: string;
  let keyFile: string;
  beforeEach(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    store = join(app.dataDir, 'latchkey.db');
    keyFile = join(app.dataDir, 'signing-keys.json');
  });
  // Also when a test has stopped the service: closing again does nothing, and what was written is searched for secrets.
  afterEach(() => app.close());

  const startAgain = (environment = {}) => TestApp.start({ ...environment, DATA_DIR: app.dataDir }, app.clock);

  /** The one line with which a start is refused. */
  async function apiError(): Promise<string> {
    try {
      await (await startAgain()).stop();
    } catch (error) {
      if (error instanceof StartupError && !/[\r\n]/.test(error.message)) return error.message;
      throw error;
    }
    return 'it started';
  }

  it('keeps keys, tokens, sessions and sign-ins that have begun over a restart and a changed BASE_URL (AUTH-31, AUTH-34)', async () => {
    const { body: pair } = await app.signInTokens(email);
    const token = await admin.token({ expiryDays: 'never' });
    const revoked = await admin.token();
    await admin.delete(`/personal-access-tokens/${revoked.tokenId}`);
    const ended = await app.signIn(email);
    await ended.post('/userAccount/logout/manual');
    const keys = (await app.anonymous.get('//.well-known/jwks.json')).text;
    const organization = (await admin.get('/org')).body;
    await app.stop();

    const next = await startAgain({
      BASE_URL: 'https://elsewhere.example.com',
      PAT_PREFIX: 'new',
      PAT_PREFIXES_ACCEPTED: 'lkpat',
    });
    try {
      expect((await next.anonymous.get('//.well-known/jwks.json')).text).toBe(keys);
      for (const { credential } of [admin, token, next.with(pair.accessToken)]) {
        expect((await next.with(credential).get('/org')).body).toEqual(organization);
      }
      expect((await next.with(revoked.credential).get('/org')).body.error.code).toBe('TOKEN_REVOKED');
      expect((await next.with(ended.credential).get('/org')).body.error.code).toBe('SESSION_EXPIRED');
      const refreshed = await next.with(pair.refreshToken).post('/userAccount/refresh/token');
      expect(refreshed.status).toBe(200);
      expect(claimsOf(refreshed.body.accessToken).iss).toBe('https://elsewhere.example.com');
    } finally {
      await next.stop();
    }
  });

  it('refuses a second server until the first has ended (STORE-11)', async () => {
    expect(await apiError()).toMatch(
      /^Another server is using DATA_DIR .*: stop it, or give this one its own directory$/,
    );
    expect((await admin.get('/org')).status).toBe(200);
    await app.stop();
    const next = await startAgain();
    expect((await next.with(admin.credential).get('/org')).status).toBe(200);
    await next.stop();
  });

  it('refuses a store any page of which is damaged (STORE-10)', async () => {
    await app.stop();
    const sound = `${store}.sound`;
    copyFileSync(store, sound);
    const connection = new Sqlite(sound, { readonly: true });
    const size = Number(connection.pragma('page_size', { simple: true }));
    const pages = Number(connection.pragma('page_count', { simple: true }));
    connection.close();
    expect(pages).toBeGreaterThan(20);
    for (let page = 0; page < pages; page += 1) {
      copyFileSync(sound, store);
      const handle = openSync(store, 'r+');
      writeSync(handle, Buffer.alloc(size, 0xa5), 0, size, page * size);
      closeSync(handle);
      expect(() => openSqlite(app.dataDir), `page ${page + 1} of ${pages}`).toThrow(
        `The store ${store} is damaged: restore it from a backup`,
      );
    }
    expect(await apiError()).toMatch(/^The store .* is damaged: restore it from a backup$/);
    copyFileSync(sound, store);
    rmSync(sound);
    await (await startAgain()).stop();
  });

  it('refuses a store that was cut short, and what never was one (STORE-10)', async () => {
    await app.stop();
    truncateSync(store, Math.floor(statSync(store).size / 2 / 4_096) * 4_096);
    expect(await apiError()).toMatch(/^The store .* is damaged: restore it from a backup$/);
    writeFileSync(store, 'a text that was put in its place\n'.repeat(500));
    expect(await apiError()).toMatch(/^The store .* is damaged: restore it from a backup$/);
    // Anyone could create an organization in the resulting store.
    writeFileSync(store, '');
    expect(await apiError()).toBe(
      `The store ${store} is empty: restore it from a backup, or remove the file to start over`,
    );
    rmSync(store);
    writeFileSync(`${store}.is-a-directory`, '');
  });

  it('refuses a store that a newer release wrote, and one with half a step in it (STORE-10)', async () => {
    await app.stop();
    const change = (sql: string) => {
      const connection = new Sqlite(store);
      connection.exec(sql);
      connection.close();
    };
    change("INSERT INTO schema_migrations VALUES (99, 'from-tomorrow', 0)");
    expect(await apiError()).toMatch(
      /^The store has schema 99, this release knows \d+: start the newer release that wrote it$/,
    );
    change('DELETE FROM schema_migrations');
    expect(await apiError()).toMatch(
      /^The store cannot be brought to schema 1 \(foundation\) and was left as it was: /,
    );
  });

  it('refuses a key file that others can read (CONFIG-3)', async () => {
    await app.stop();
    for (const mode of [0o644, 0o640, 0o604, 0o602]) {
      chmodSync(keyFile, mode);
      expect(await apiError()).toMatch(/^The key file .*signing-keys\.json can be read by others: run chmod 600 on it/);
    }
    chmodSync(keyFile, 0o600);
    await (await startAgain()).stop();
  });

  it('refuses a key file that is damaged, and never replaces it (AUTH-34)', async () => {
    await app.stop();
    const { keys } = JSON.parse(readFileSync(keyFile, 'utf8'));
    const damaged = [
      '',
      '{',
      'null',
      '{"keys":[]}',
      JSON.stringify({ keys: [{ ...keys[0], d: undefined }] }),
      JSON.stringify({ keys: [{ ...keys[0], d: 'AAAA' }] }),
      JSON.stringify({ keys: [{ ...keys[0], x: '!' }] }),
      JSON.stringify({ keys: [{ ...keys[0], crv: 'P-256' }] }),
      JSON.stringify({ keys: [keys[0], { ...keys[0], x: 'AAAA' }] }),
    ];
    for (const content of damaged) {
      writeFileSync(keyFile, content);
      expect(await apiError()).toMatch(/^The key file .*signing-keys\.json is damaged: restore it from a backup$/);
      expect(readFileSync(keyFile, 'utf8')).toBe(content);
    }
  });
});

describe('a data directory that cannot be used', () => {
  let parent: string;
  beforeEach(() => {
    parent = mkdtempSync(join(tmpdir(), 'latchkey-test-'));
  });
  afterEach(() => rmSync(parent, { recursive: true, force: true }));

  function apiError(dataDir: string): string {
    try {
      prepareDataDir(dataDir);
      holdDataDir(dataDir).release();
    } catch (error) {
      if (error instanceof StartupError) return error.message;
      throw error;
    }
    return 'it was taken';
  }

  /** As a user whom file modes hold back: root is not. */
  function withoutRoot<T>(work: () => T): T {
    const isRoot = process.geteuid?.() === 0;
    if (isRoot) process.seteuid?.(65_534);
    try {
      return work();
    } finally {
      if (isRoot) process.seteuid?.(0);
    }
  }

  it('is made for its owner alone, with all that is missing above it (CONFIG-3)', () => {
    const dataDir = join(parent, 'a', 'b', 'data');
    expect(apiError(dataDir)).toBe('it was taken');
    expect(statSync(dataDir).mode & 0o777).toBe(0o700);
    expect(apiError(dataDir)).toBe('it was taken');
  });

  it('refuses one that it may not write to, and says why (CONFIG-24)', async () => {
    chmodSync(parent, 0o555);
    const file = join(parent, 'server.lock');
    const denied = `EACCES: permission denied, open '${file}'`;
    expect(withoutRoot(() => apiError(parent))).toBe(`DATA_DIR ${parent} cannot be written: ${denied}`);
    // Left behind by another user, in a directory that all may write to.
    chmodSync(parent, 0o777);
    writeFileSync(file, '');
    chmodSync(file, 0o444);
    expect(withoutRoot(() => apiError(parent))).toBe(`DATA_DIR ${parent} cannot be written: ${denied}`);
    const store = join(parent, 'latchkey.db');
    await openSqlite(parent).close();
    chmodSync(store, 0o000);
    expect(() => withoutRoot(() => openSqlite(parent))).toThrow(
      `DATA_DIR ${parent} cannot be written: EACCES: permission denied, open '${store}'`,
    );
  });

  it('refuses one below a directory that it may not write to (CONFIG-24)', () => {
    chmodSync(parent, 0o555);
    const below = join(parent, 'below');
    expect(withoutRoot(() => apiError(join(below, 'data')))).toBe(
      `DATA_DIR ${below}/data cannot be created: EACCES: permission denied, mkdir '${below}'`,
    );
  });

  it('refuses a file, and what would be below one (CONFIG-24)', () => {
    const file = join(parent, 'file');
    writeFileSync(file, '');
    expect(apiError(file)).toBe(`DATA_DIR ${file} is a file: give a directory`);
    expect(apiError(join(file, 'below'))).toMatch(/^DATA_DIR .*\/file\/below cannot be created: ENOTDIR: /);
  });

  it('refuses a link to nowhere (CONFIG-24)', () => {
    const link = join(parent, 'link');
    symlinkSync(join(parent, 'nowhere'), link);
    expect(apiError(link)).toMatch(/^DATA_DIR .*\/link cannot be created: ENOENT: /);
  });

  it('does not try for ever where nothing can be made (CONFIG-24)', () => {
    expect(apiError('/proc/no-such-directory/data')).toBe(
      "DATA_DIR /proc/no-such-directory/data cannot be created: ENOENT: no such file or directory, mkdir '/proc/no-such-directory'",
    );
  });
});
