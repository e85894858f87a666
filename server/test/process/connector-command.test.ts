import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { bareJwt, compactJwt, hmac } from '../support/jwt.ts';
import { TestApp } from '../support/test-app.ts';
import { TestClock } from '../support/test-clock.ts';

const command = new URL('../../../scripts/connector.mjs', import.meta.url).pathname;
const directory = mkdtempSync(join(tmpdir(), 'latchkey-test-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

function file(name: string, content: string): string {
  const path = join(directory, name);
  writeFileSync(path, content);
  return path;
}

function run(...options: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [command, ...options], { encoding: 'utf8' });
  return { status, stdout, stderr };
}

/** Starts the command and answers its address; `end` stops it and answers its exit code. */
async function start(...options: string[]) {
  const child = spawn(process.execPath, [command, '--port', '0', ...options], { stdio: ['ignore', 'pipe', 'inherit'] });
  const ended = once(child, 'exit').then(() => {
    throw new Error('the command ended');
  });
  const [line] = (await Promise.race([once(child.stdout, 'data'), ended])) as [Buffer];
  ended.catch(() => {});
  const url = /http:\S+/.exec(line.toString())?.[0] ?? '';
  const end = async () => {
    child.kill('SIGTERM');
    const [code] = (await once(child, 'exit')) as [number];
    return code;
  };
  return { url: `${url}/api/v1/entity`, end };
}

async function status(url: string, credential?: string): Promise<number> {
  const headers: Record<string, string> = credential === undefined ? {} : { authorization: `Bearer ${credential}` };
  return (await fetch(url, { headers })).status;
}

describe('npm run connector', () => {
  it('tells what it takes', () => {
    const { status: code, stdout } = run('--help');
    expect(code).toBe(0);
    for (const option of ['--port', '--jwks', '--secret', '--users']) expect(stdout).toContain(option);
  });

  it.each([
    [['--port', '65536'], '--port must be a number up to 65535'],
    [['--verbose'], "Unknown option '--verbose'; see npm run connector -- --help"],
    [['--jwks', 'http://a', '--secret', 'b'], '--jwks and --secret exclude each other'],
    [['--jwks', 'keys'], '--jwks must be an address'],
    [['--users', '/nowhere.json'], '/nowhere.json cannot be read as JSON (ENOENT)'],
    [['--users', file('users.json', '[{}]')], `${directory}/users.json must be a JSON list of`],
  ])('refuses %j in one line', (options, line) => {
    const { status: code, stderr } = run('--port', '0', ...options);
    expect([code, stderr.trimEnd().split('\n').length]).toEqual([1, 1]);
    expect(stderr).toContain(line);
  });

  it('knows the people of its file, verifies by a secret, and ends at SIGTERM', async () => {
    const secret = 'kX9vQ2mZ7pL4wR8tB1nC6yD3sF5gH0jA';
    const users = file('people.json', JSON.stringify([{ userId: 'u1', orgId: 'o1', name: 'Ann', email: 'a@x.io' }]));
    const backend = await start('--secret', secret, '--users', users);
    const exp = Math.floor(Date.now() / 1_000) + 60;
    const claims = { userId: 'u2', orgId: 'o1', fullName: 'Bob', exp };
    const good = compactJwt({ alg: 'HS256' }, claims, hmac(secret));
    const response = await fetch(`${backend.url}/user/list`, { headers: { authorization: `Bearer ${good}` } });
    const body = (await response.json()) as { users: { name: string }[] };
    expect(body.users.map(({ name }) => name)).toEqual(['Ann', 'Bob']);
    const bad = [
      compactJwt({ alg: 'HS256' }, claims, hmac('another')),
      compactJwt({ alg: 'none' }, claims, () => ''),
      compactJwt({ alg: 'EdDSA' }, claims, hmac(secret)),
      compactJwt({ alg: 'HS256' }, { ...claims, exp: exp - 120 }, hmac(secret)),
      compactJwt({ alg: 'HS256' }, { ...claims, exp: 'never' }, hmac(secret)),
      compactJwt({ alg: 'HS256' }, { orgId: 'o1' }, hmac(secret)),
      `lkpat_${good}`,
      'x',
      undefined,
    ];
    for (const credential of bad) expect(await status(`${backend.url}/user/list`, credential)).toBe(401);
    expect([await status(`${backend.url}/nothing`, good), await status(`${backend.url}/team/x`, good)]).toEqual([
      404, 404,
    ]);
    expect(await backend.end()).toBe(0);
  });

  it('verifies the tokens of a running service by its public keys (AUTH-35)', async () => {
    const app = await TestApp.start({}, new TestClock(Date.now()));
    const admin = await app.setUp();
    const token = await admin.token();
    const backend = await start('--jwks', `${app.url}/.well-known/jwks.json`);
    const bare = bareJwt(token.credential ?? '');
    expect(await status(`${backend.url}/user/list`, admin.credential ?? '')).toBe(200);
    expect(await status(`${backend.url}/user/teams`, bare)).toBe(200);
    const [head = '', , signature = ''] = bare.split('.');
    const altered = Buffer.from(JSON.stringify({ userId: 'x', orgId: 'y' })).toString('base64url');
    expect(await status(`${backend.url}/user/list`, `${head}.${altered}.${signature}`)).toBe(401);
    const unknownKey = compactJwt({ alg: 'EdDSA', kid: 'x' }, { userId: 'x', orgId: 'y' }, hmac('x'));
    expect(await status(`${backend.url}/user/list`, unknownKey)).toBe(401);
    expect(await backend.end()).toBe(0);
    await app.close();
  });
});
