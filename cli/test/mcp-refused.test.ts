import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { ensureServerIsBuilt } from '../../server/test/support/server-process.ts';
import { type Client, TestApp } from '../../server/test/support/test-app.ts';
import { type CommandEnd, latchkey } from './command-process.ts';
import { FakeInstance } from './fake-instance.ts';

vi.setConfig({ testTimeout: 60_000 });

let app: TestApp;
let admin: Client;
let raw: string;
let directory: string;

beforeAll(async () => {
  ensureServerIsBuilt();
  app = await TestApp.start();
  admin = await app.setUp();
  raw = (await admin.token()).credential ?? '';
  directory = mkdtempSync(join(tmpdir(), 'latchkey-mcp-'));
}, 120_000);
afterAll(async () => {
  rmSync(directory, { recursive: true, force: true });
  await app.close();
});

function file(name: string, content: string): string {
  const path = join(directory, name);
  writeFileSync(path, content);
  return path;
}

/** Runs the command with nothing on its standard input. */
const run = (args: readonly string[], environment: Readonly<Record<string, string>> = {}) =>
  latchkey(['mcp', ...args], { environment });

describe('latchkey mcp with what it cannot work with', () => {
  /** A run, and its one line of output; an expression matches a part of it. */
  type Case = readonly [Promise<CommandEnd>, string | RegExp];

  const ends = (code: number, line: string | RegExp) => {
    const oneLine = line instanceof RegExp && new RegExp(`^latchkey: [^\\n]*${line.source}[^\\n]*\\n$`);
    const stderr = oneLine ? expect.stringMatching(oneLine) : `latchkey: ${line}\n`;
    return { code, signal: null, stdout: '', stderr };
  };

  it('2: says what is missing or wrong, and never a token (CLI-2, CLI-6)', async () => {
    const noScheme = 'The address of the instance must begin with https://, such as https://latchkey.example.com';
    const noForm = 'LATCHKEY_TOKEN holds something that is no token: put in the token alone, on one line';
    const missing = join(directory, 'none');
    const empty = file('empty', '\n');
    const at = ['--url', app.url];
    const to = (url: string) => run(['--url', url, '--token', 'a']);
    const cases: readonly Case[] = [
      [run([]), 'There is no address: give --url, or set LATCHKEY_URL'],
      [run(at), 'There is no token: set LATCHKEY_TOKEN or LATCHKEY_TOKEN_FILE, or give --token-file'],
      [
        run(at, { LATCHKEY_TOKEN: 'a', LATCHKEY_TOKEN_FILE: 'b' }),
        /LATCHKEY_TOKEN and LATCHKEY_TOKEN_FILE are both given/,
      ],
      [run([...at, '--token', 'a', '--token-file', 'b']), '--token and --token-file are both given: one is enough'],
      [run([...at, '--token-file', missing]), `--token-file cannot be read: ${missing} (ENOENT)`],
      [run([...at, '--token-file', empty]), '--token-file holds no token'],
      [run(at, { LATCHKEY_TOKEN: 'sec ret' }), noForm],
      [run(at, { LATCHKEY_TOKEN: 'secret\r\nx-evil: 1' }), noForm],
      [to('latchkey.example.com'), noScheme],
      [to('localhost:3000'), noScheme],
      [to('https://ada:secret@example.com'), 'The address of the instance must hold no user name and no password'],
      [to('https://example.com/?x=1'), /must hold no \? and no #/],
      [to('http://latchkey.example.com/mcp'), /would be sent to http:\/\/latchkey\.example\.com unencrypted/],
    ];
    expect(await Promise.all(cases.map(([ran]) => ran))).toEqual(cases.map(([, line]) => ends(2, line)));
  });

  it('1: says that nothing is there, or not what it should be, and tells no one the token (MCP-15, CLI-2, CLI-6)', async () => {
    const gone = await FakeInstance.start();
    gone.close();
    const instance = await FakeInstance.start();
    const { url } = instance;
    const to = (address: string) => run(['--url', address, '--token', raw]);
    const stranger = (path: string, status: number) =>
      `There is no Latchkey at ${url}${path}: it answers ${status} in another form. Use the address in BASE_URL of the instance`;
    const nothing = 'nothing listens there (ECONNREFUSED). Is the address right, and does the instance run?';
    const cases: readonly Case[] = [
      [to(gone.url), `${gone.url} cannot be reached: ${nothing}`],
      // A port that no browser would go to, either.
      [to('http://127.0.0.1:1'), /cannot be reached: bad port/],
      [to('https://no-such-name.invalid'), /https:\/\/no-such-name\.invalid cannot be reached: its name /],
      [to(url.replace('http', 'https')), /No encrypted connection to https:[^ ]+: [A-Z_]+\. .*NODE_EXTRA_CA_CERTS/],
      [to(`${url}/html`), stranger('/html', 200)],
      [to(`${url}/html-404`), stranger('/html-404', 404)],
      [to(`${url}/json`), stranger('/json', 200)],
      [to(`${url}/cut`), /cannot be reached: the connection was cut/],
      [to(`${url}/old`), `The instance at ${url}/old is too old for MCP: it must be brought up to date`],
      [to(`${url}/moved`), /leads on to https:\/\/sso\.example\.com: give the address where the instance itself is/],
      [to(`${url}/busy`), `${url}/busy answers 503. Try again later`],
    ];
    expect(await Promise.all(cases.map(([ran]) => ran))).toEqual(cases.map(([, line]) => ends(1, line)));
    expect(instance.seen.length).toBeGreaterThan(6);
    expect(instance.seen.filter(({ authorization }) => authorization !== undefined)).toEqual([]);
    instance.close();
  });

  it('3: says in the words of the instance why it refuses the token (MCP-15, CLI-6)', async () => {
    const [revoked, expired] = [await admin.token(), await admin.token({ expiryDays: 30 })];
    await admin.delete(`/personal-access-tokens/${revoked.tokenId}`);
    const refused = (words: string) =>
      `${app.url} rejects the token: ${words}. Create another one in the console or with POST /api/v1/personal-access-tokens`;
    const withToken = (token: string | null) => run(['--url', app.url], { LATCHKEY_TOKEN: token ?? '' });
    expect(await withToken('nonsense')).toEqual(ends(3, refused('The token is not valid')));
    expect(await withToken(revoked.credential)).toEqual(ends(3, refused('The token was revoked')));
    app.clock.advance(31 * 24 * 3_600_000);
    expect(await withToken(expired.credential)).toEqual(ends(3, refused('The token has expired')));
    const { code, stdout, stderr } = await run(['--url', app.url, '--token', 'nonsense', '--json']);
    expect({ code, stdout, ...JSON.parse(stderr) }).toEqual({
      code: 3,
      stdout: '',
      error: { code: 'REFUSED', message: refused('The token is not valid') },
    });
  });
});
