import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { compactJwt, hmac } from '../../server/test/support/jwt.ts';
import { ensureServerIsBuilt, withDirectory } from '../../server/test/support/server-process.ts';
import { latchkey, root } from './command-process.ts';

beforeAll(ensureServerIsBuilt);
vi.setConfig({ testTimeout: 60_000 });

const sharedSecret = 'tests-share-this-with-services-4711';
const started: { kill(signal: NodeJS.Signals): unknown }[] = [];
afterEach(() => {
  for (const child of started.splice(0)) child.kill('SIGKILL');
});

/** Starts `latchkey serve`, waits until it listens, and answers where, and how it ends. */
async function serve(args: readonly string[], environment: Readonly<Record<string, string>>) {
  const program = join(root, 'dist/bin/latchkey.js');
  const env = { PATH: process.env['PATH'] ?? '', PORT: '0', METRICS_PORT: '0', ...environment };
  const child = spawn(process.execPath, [program, 'serve', ...args], { env, stdio: ['ignore', 'pipe', 'pipe'] });
  started.push(child);
  const stderr = text(child.stderr);
  let stdout = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    stdout += part;
  });
  const ended = once(child, 'close').then(async () => ({ code: child.exitCode, stderr: await stderr }));
  const address = () => /"address":"(http:[^"]+)"/.exec(stdout)?.[1];
  await vi.waitUntil(() => address() !== undefined || child.exitCode !== null, { timeout: 20_000 });
  return { child, ended, url: address() ?? '', said: () => stdout };
}

describe('latchkey serve', () => {
  it.each(['SIGTERM', 'SIGINT'] as const)('0: runs the server until %s ends it in order (CLI-12, RUN-7)', (signal) =>
    withDirectory(async (directory) => {
      const dataDir = join(directory, 'store');
      const { child, ended, url } = await serve(['--data-dir', dataDir], { DATA_DIR: '/nowhere' });
      expect((await fetch(`${url}/health/ready`)).status).toBe(200);
      expect((await latchkey(['org', 'status', '--data-dir', dataDir])).stdout).toBe('No organization yet\n');
      child.kill(signal);
      expect(await ended).toEqual({ code: 0, stderr: '' });
    }),
  );

  it('reads the configuration anew at SIGHUP, and keeps the old one when the new one is wrong (CONFIG-26, CONFIG-27)', () =>
    withDirectory(async (dataDir) => {
      const file = join(dataDir, 'latchkey.config.json');
      const write = (content: string) => writeFileSync(file, content);
      write('{ "METRICS": "on" }');
      const environment = { DATA_DIR: dataDir, CONFIG_FILE: file, SCOPED_JWT_SECRET: sharedSecret };
      const { child, ended, url, said } = await serve([], environment);
      const metrics = async () => (await fetch(`${url}/metrics`)).status;
      const hangUp = async (line: string) => {
        const count = () => said().split(line).length;
        const before = count();
        child.kill('SIGHUP');
        await vi.waitUntil(() => count() > before, { timeout: 10_000 });
      };
      expect(await metrics()).toBe(200);
      write('{ "METRICS": "off" }');
      expect(await metrics()).toBe(200);
      await hangUp('configuration reloaded');
      expect(await metrics()).toBe(404);
      write('{ "METRICS": "on", "PAT_PREFIX": "a b" }');
      await hangUp('the old configuration stays');
      expect(await metrics()).toBe(404);
      const reason = JSON.parse(
        said()
          .trim()
          .split('\n')
          .findLast((line) => line.includes('"reason"')) ?? '',
      ).reason;
      expect(reason).toBe('PAT_PREFIX is "a b": it must be 1 to 32 letters, digits, _ or -');
      write(`{ "SCOPED_JWT_SECRET": "${sharedSecret}", "METRICS": `);
      await hangUp('the old configuration stays');
      write('{ "METRICS": "on" }');
      const claims = { scopes: ['FETCH_CONFIG'], exp: Math.floor(Date.now() / 1_000) + 60 };
      const authorization = `Bearer ${compactJwt({ alg: 'HS256' }, claims, hmac(sharedSecret))}`;
      const path = `${url}/api/v1/users/updateAppConfig`;
      expect((await fetch(path, { method: 'POST', headers: { authorization } })).status).toBe(200);
      expect(await metrics()).toBe(200);
      child.kill('SIGTERM');
      expect(await ended).toEqual({ code: 0, stderr: '' });
      expect(said()).not.toContain(sharedSecret);
    }));

  it('1: says in one line what is in the way: the port, another server, a wrong value (CLI-6, CLI-12)', () =>
    withDirectory(async (dataDir) => {
      const other = createServer().listen(0, '127.0.0.1');
      await once(other, 'listening');
      const address = other.address();
      const port = typeof address === 'object' ? Number(address?.port) : 0;
      const environment = { DATA_DIR: dataDir, PORT: String(port) };
      const taken = `Port ${port} is in use by another program: set PORT to another, for example PORT=${port + 1} npm start`;
      expect(await latchkey(['serve'], { environment })).toMatchObject({
        code: 1,
        stdout: '',
        stderr: `latchkey: ${taken}\n`,
      });
      const inJson = await latchkey(['serve', '--json'], { environment });
      expect([inJson.code, JSON.parse(inJson.stderr)]).toEqual([1, { error: { code: 'FAILED', message: taken } }]);
      other.close();

      const { child, ended } = await serve(['--data-dir', dataDir], {});
      const second = await latchkey(['serve', '--data-dir', dataDir], { environment: { PORT: '0' } });
      expect(second.code).toBe(1);
      expect(second.stderr).toMatch(/^latchkey: Another server is using DATA_DIR [^\n]+\n$/);
      child.kill('SIGTERM');
      expect((await ended).code).toBe(0);
      const wrong = await latchkey(['serve'], { environment: { DATA_DIR: dataDir, PORT: '70000' } });
      expect(wrong).toMatchObject({ code: 1, stderr: 'latchkey: PORT is "70000": it must be at most 65535\n' });
    }));
});
