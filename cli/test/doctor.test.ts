import { once } from 'node:events';
import { chmodSync, cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { MailServer } from '../../server/test/support/mail-server.ts';
import { ensureServerIsBuilt, ServerProcess, withDirectory } from '../../server/test/support/server-process.ts';
import { TestApp } from '../../server/test/support/test-app.ts';
import { checkClock, checkSpace, checkUser } from '../src/doctor/machine-checks.ts';
import { latchkey } from './command-process.ts';

vi.setConfig({ testTimeout: 120_000 });

interface Check {
  readonly name: string;
  readonly state: string;
  readonly message: string;
  readonly cure: string | null;
}

let directory: string;
/** A store that nothing runs on. */
let sound: string;
beforeAll(async () => {
  ensureServerIsBuilt();
  directory = mkdtempSync(join(tmpdir(), 'latchkey-test-'));
  sound = join(directory, 'sound');
  const app = await TestApp.start({ DATA_DIR: sound, DATABASE_URL: '' });
  await app.setUp();
  await app.stop();
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

let copies = 0;
function copy(): string {
  copies += 1;
  const dataDir = join(directory, `copy-${copies}`);
  cpSync(sound, dataDir, { recursive: true });
  return dataDir;
}

/** Returns the doctor's finding for each check, by name. */
async function examine(dataDir: string, environment: Record<string, string> = {}, ...more: string[]) {
  const args = ['doctor', '--json', '--data-dir', dataDir, ...more];
  // A port without a listener.
  const { code, stdout, stderr } = await latchkey(args, { environment: { PORT: '1', ...environment } });
  const said = JSON.parse(stdout || stderr);
  const checks: readonly Check[] = said.checks ?? said.error.checks;
  const of = (name: string) => checks.find((check) => check.name === name);
  return { code, said, checks, of, text: stdout + stderr };
}

const contentOf = (dataDir: string) =>
  readdirSync(dataDir).map((name) => [name, readFileSync(join(dataDir, name)).toString('base64')]);

/** Listens and says nothing. */
async function silentServer(): Promise<{ readonly port: number; readonly server: Server }> {
  // The data is read: an unread socket gets no event when the other side has gone.
  const server = createServer((socket) => socket.resume()).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  return { server, port: typeof address === 'object' ? Number(address?.port) : 0 };
}

describe('latchkey doctor', () => {
  it('0: finds nothing wrong with a sound store, and changes nothing (CLI-21, CLI-22)', async () => {
    const before = contentOf(sound);
    const { code, checks } = await examine(sound, {}, '--deep');
    expect(code).toBe(0);
    expect(Object.fromEntries(checks.map(({ name, state }) => [name, state]))).toEqual({
      configuration: 'ok',
      store: 'ok',
      integrity: 'ok',
      user: process.getuid?.() === 0 ? 'warning' : 'ok',
      files: 'ok',
      disk: expect.stringMatching(/^(ok|warning)$/),
      server: 'ok',
      clock: 'ok',
      mail: 'skipped',
      broker: 'skipped',
      'single sign-on': 'skipped',
      connector: 'skipped',
      events: 'ok',
      addresses: 'ok',
      tokens: 'ok',
      erasures: 'ok',
      'audit log': 'ok',
    });
    for (const { message, cure, state } of checks) {
      expect(message).toMatch(/^[^\n]+$/);
      expect(cure === null).toBe(state === 'ok' || state === 'skipped');
    }
    expect(contentOf(sound)).toEqual(before);
  });

  it('1: lists everything in words, with the cure below what failed (CLI-21)', async () => {
    const missing = join(directory, 'missing');
    const { code, stdout, stderr } = await latchkey(['doctor', '--data-dir', missing], { environment: { PORT: '1' } });
    expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
    const [first, ...lines] = stderr.trimEnd().split('\n');
    expect(first).toBe('latchkey: Failed: store');
    const place = lines.findIndex((line) => /^store +FAILED +DATA_DIR .* holds no store/.test(line));
    expect(lines[place + 1]).toMatch(/^ +→ \S/);
    const columns = lines.filter((line) => !line.startsWith(' ')).map((line) => /^.*?\s{2,}/.exec(line)?.[0].length);
    expect(new Set(columns).size).toBe(1);
    expect(existsSync(missing)).toBe(false);
  });

  it('1: tells of a wrong configuration, without a secret (CLI-21, CLI-22, CONFIG-24)', async () => {
    const { code, said, checks } = await examine(sound, { SMTP_URL: 'smtp://ada:geheim-4711@:25' });
    expect([code, said.error.code, checks.map(({ name, state }) => [name, state])]).toEqual([
      1,
      'FAILED',
      [['configuration', 'failed']],
    ]);
    expect(JSON.stringify(said)).not.toContain('geheim-4711');
  });

  it('1: tells of damage, of stray rows and of another schema (CLI-21, STORE-10)', async () => {
    const damaged = copy();
    const file = join(damaged, 'latchkey.db');
    const bytes = readFileSync(file);
    bytes.fill(0xa5, bytes.length - 60_000);
    writeFileSync(file, bytes);
    const { code, of } = await examine(damaged);
    expect([code, of('integrity')?.state]).toEqual([1, 'failed']);
    expect(of('integrity')?.message).toMatch(/is damaged/);

    const stray = copy();
    const store = new Sqlite(join(stray, 'latchkey.db'));
    store.pragma('foreign_keys = OFF');
    store.exec("INSERT INTO schema_migrations VALUES (99, 'later', 0)");
    store.exec("UPDATE group_members SET user_id = '0123456789abcdef01234567'");
    store.close();
    const second = await examine(stray);
    expect(second.of('store')).toMatchObject({ state: 'failed', message: expect.stringContaining('schema 99') });
    expect(second.of('events')?.state).toBe('skipped');
    const strays = { state: 'failed', message: expect.stringContaining('group_members') };
    expect(second.of('integrity')).toMatchObject(strays);
  });

  it('1: tells of secret files that others can read, and warns of a store that they can (CLI-21, CONFIG-3)', async () => {
    const dataDir = copy();
    chmodSync(join(dataDir, 'latchkey.db'), 0o644);
    const open = await examine(dataDir);
    expect([open.code, open.of('files')?.state]).toEqual([0, 'warning']);
    chmodSync(join(dataDir, 'signing-keys.json'), 0o640);
    const { code, of } = await examine(dataDir);
    expect([code, of('files')?.state]).toEqual([1, 'failed']);
    expect(of('files')?.cure).toContain(`chmod 600 on it: ${join(dataDir, 'latchkey.db')}`);
  });

  it('lists tokens that made each other, until they are revoked (CRED-12)', async () => {
    const dataDir = copy();
    const store = new Sqlite(join(dataDir, 'latchkey.db'));
    const insert = store.prepare(
      `INSERT INTO personal_access_tokens (id, hash, org_id, user_id, name, scopes, created_at, parent_id)
       SELECT ?, ?, org_id, id, 'made', 'user:read', 1, ? FROM users`,
    );
    const [one, two, own, leaf] = ['1', '2', '3', '4'].map((digit) => digit.repeat(24)) as [
      string,
      string,
      string,
      string,
    ];
    for (const [id, maker] of [
      [one, two],
      [two, one],
      [own, own],
      [leaf, one],
    ])
      insert.run(id, `hash ${id}`, maker);
    const found = await examine(dataDir);
    expect([found.code, found.of('tokens')?.state]).toEqual([0, 'warning']);
    expect(found.of('tokens')?.message).toMatch(new RegExp(`: ${one}, ${two}; ${own}$`));
    store.exec('UPDATE personal_access_tokens SET revoked_at = 1');
    store.close();
    expect((await examine(dataDir)).of('tokens')?.state).toBe('ok');
  });

  it('1: names a user who counts as erased and is not (AUDIT-20)', async () => {
    const dataDir = copy();
    const store = new Sqlite(join(dataDir, 'latchkey.db'));
    store.exec('UPDATE users SET erased_at = 1');
    store.close();
    const { code, of } = await examine(dataDir);
    expect([code, of('erasures')?.state]).toEqual([1, 'failed']);
    expect(of('erasures')?.message).toMatch(/full_name, email, is_deleted, password_credentials.*group_members/);
  });

  it('works while a server runs, which it asks for its clock (CLI-21, CLI-22)', () =>
    withDirectory(async (dataDir) => {
      const server = await ServerProcess.start({ DATA_DIR: dataDir });
      const PORT = new URL(server.url).port;
      const { code, of } = await examine(dataDir, { PORT });
      expect([code, of('server')?.state, of('clock')?.state]).toEqual([0, 'ok', 'ok']);
      expect(of('server')?.message).toMatch(/^A server runs on .* and answers$/);
      expect(of('clock')?.message).toMatch(/and so does that of the server$/);
      expect((await examine(dataDir)).of('server')?.message).toMatch(/but none answers at 127\.0\.0\.1:1 /);
      expect((await examine(sound, { PORT })).of('server')?.message).toMatch(/^A server answers, but none runs on/);
      expect((await server.end('SIGTERM')).code).toBe(0);
      expect((await examine(dataDir)).of('server')?.message).toBe('No server runs on this data directory');
    }));

  it('signs in at the mail server, sends nothing, and never tells the password (CLI-21, CLI-22, MAIL-2)', async () => {
    const login = { username: 'ada', password: 'geheim-4711' };
    const mail = await MailServer.start({ login });
    try {
      const at = (password: string) => ({ SMTP_URL: `smtp://ada:${password}@127.0.0.1:${mail.port}` });
      const well = await examine(sound, at(login.password));
      expect([well.code, well.of('mail')?.state]).toEqual([0, 'ok']);
      const wrong = await examine(sound, at('falsch-0815'));
      expect([wrong.code, wrong.of('mail')?.state]).toEqual([1, 'failed']);
      expect(mail.mails).toEqual([]);
      for (const { text } of [well, wrong]) expect(text).not.toMatch(/geheim-4711|falsch-0815|Z2VoZWlt|ZmFsc2No/);
    } finally {
      await mail.stop();
    }
  });

  it('1: waits for no one who is silent without bound, and tells of each (CLI-21, CLI-22)', async () => {
    const { server, port } = await silentServer();
    try {
      const { code, of, text } = await examine(sound, {
        SMTP_URL: `smtp://ada:geheim-4711@127.0.0.1:${port}`,
        EVENTS_URL: `nats://ada:geheim-4711@127.0.0.1:${port}`,
        CONNECTOR_BACKEND_URL: `http://127.0.0.1:${port}`,
        OIDC_ISSUER: `http://127.0.0.1:${port}`,
        OIDC_CLIENT_ID: 'latchkey',
        OIDC_CLIENT_SECRET: 'geheim-4711',
      });
      expect(code).toBe(1);
      for (const name of ['mail', 'broker', 'connector', 'single sign-on'])
        expect(of(name)?.state, name).toBe('failed');
      expect(text).not.toContain('geheim-4711');
    } finally {
      server.close();
    }
  });
});

describe('what the doctor makes of', () => {
  const nowMs = Date.UTC(2026, 10, 28);
  const clock = (more: Partial<Parameters<typeof checkClock>[0]>) =>
    checkClock({ nowMs, latestMs: null, serverAheadMs: null, ...more }).state;

  it.each([
    ['a year before this release', { nowMs: Date.UTC(2025, 11, 31) }, 'failed'],
    ['1970', { nowMs: 0 }, 'failed'],
    ['a store from the future', { latestMs: nowMs + 61_000 }, 'failed'],
    ['a store from a moment ago', { latestMs: nowMs - 1 }, 'ok'],
    ['a server that is 3 s ahead', { serverAheadMs: 3_000 }, 'warning'],
    ['a server that is a minute behind', { serverAheadMs: -60_000 }, 'failed'],
    ['a server with the same time', { serverAheadMs: 300 }, 'ok'],
  ])('the clock: %s (CLI-21)', (_, times, state) => {
    expect(clock(times)).toBe(state);
  });

  it.each([
    [199_999_999, 'failed'],
    [200_000_000, 'warning'],
    [2_000_000_000, 'ok'],
  ])('%d free bytes (CLI-21)', (freeBytes, state) => {
    expect(checkSpace({ freeBytes, place: '/' }).state).toBe(state);
  });

  it.each([
    [0, 'warning'],
    [1_000, 'ok'],
    [undefined, 'ok'],
  ])('the user %s (CLI-21)', (uid, state) => expect(checkUser(uid).state).toBe(state));
});
