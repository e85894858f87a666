import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { ensureServerIsBuilt, readStore, ServerProcess, withDirectory } from '../support/server-process.ts';
import { organization, password } from '../support/test-app.ts';

const oneLine = /^latchkey: [^\n]+\n$/;

beforeAll(ensureServerIsBuilt);
// A server takes about a second to start, several when the machine is busy.
vi.setConfig({ testTimeout: 60_000 });

describe('SIGTERM', () => {
  it('finishes what is in flight, writes lastUsedAt and ends with 0 (RUN-7, PAT-19)', () =>
    withDirectory(async (dataDir) => {
      const server = await ServerProcess.start({ DATA_DIR: dataDir, RATE_LIMIT: 'off' });
      const token = await server.setUp();
      const { body } = await server.call('POST', '/personal-access-tokens', { token, body: { name: 'used' } });
      // The connections are open before, so that all requests have arrived when the first answers come.
      const tokens = await Promise.all(Array.from({ length: 4 }, () => server.beginSignIn()));
      const responded: number[] = [];
      const attempts = tokens.map(async (begun) => {
        const { status } = await server.authenticate(begun);
        responded.push(status);
      });
      await server.call('GET', '/org', { token: body.token.accessToken });
      await vi.waitUntil(() => responded.length >= 1, { timeout: 20_000, interval: 5 });
      const finishedBefore = responded.length;
      const { code } = await server.end('SIGTERM');
      await Promise.all(attempts);
      expect(responded).toEqual(tokens.map(() => 200));
      expect(finishedBefore).toBeLessThan(tokens.length);
      expect(code).toBe(0);
      const [row] = readStore(dataDir, 'SELECT last_used_at FROM personal_access_tokens');
      expect(row.last_used_at).toBeGreaterThan(0);
    }));

  it('waits for a body that is still arriving, and takes no new connection (RUN-7)', () =>
    withDirectory(async (dataDir) => {
      const server = await ServerProcess.start({ DATA_DIR: dataDir });
      const { hostname, port } = new URL(server.url);
      const body = JSON.stringify(organization);
      const socket = connect(Number(port), hostname);
      let response = '';
      socket.setEncoding('utf8').on('data', (text: string) => {
        response += text;
      });
      await once(socket, 'connect');
      const head = [
        'POST /api/v1/org HTTP/1.1',
        'host: x',
        'content-type: application/json',
        `content-length: ${body.length}`,
      ];
      socket.write(`${head.join('\r\n')}\r\n\r\n${body.slice(0, 20)}`);
      // A response to another client shows that the server has read the earlier bytes.
      await server.call('GET', '/org/exists');
      server.signal('SIGTERM');
      for (let tries = 0; tries < 200; tries += 1) {
        if (
          await server.call('GET', '/org/exists').then(
            () => false,
            () => true,
          )
        )
          break;
        await sleep(20);
      }
      await expect(server.call('GET', '/org/exists')).rejects.toThrow('fetch failed');
      socket.write(body.slice(20));
      const { code } = await server.ended;
      expect(response).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
      expect(code).toBe(0);
      expect(readStore(dataDir, 'SELECT slug FROM organizations')).toEqual([{ slug: 'org-1001' }]);
    }));

  it('does not wait for connections on which nothing happens; SIGINT does the same (RUN-7)', () =>
    withDirectory(async (dataDir) => {
      const server = await ServerProcess.start({ DATA_DIR: dataDir });
      const { hostname, port } = new URL(server.url);
      const sockets = [connect(Number(port), hostname), connect(Number(port), hostname)];
      await Promise.all(sockets.map((socket) => once(socket, 'connect')));
      sockets[1]?.write('GET /health/live HTTP/1.1\r\nhost: x\r\n\r\n');
      if (sockets[1]) await once(sockets[1], 'data');
      const startedAt = performance.now();
      const { code } = await server.end('SIGINT');
      expect(code).toBe(0);
      expect(performance.now() - startedAt).toBeLessThan(5_000);
      for (const socket of sockets) socket.destroy();
    }));
});

describe('a start that fails', () => {
  it('ends with 1 and one line when the port is taken (STORE-11)', () =>
    withDirectory(async (dataDir) => {
      const other = createServer().listen(0, '127.0.0.1');
      await once(other, 'listening');
      const address = other.address();
      const port = typeof address === 'object' ? String(address?.port) : '';
      const { code, stdout, stderr } = await ServerProcess.startAndEnd({ DATA_DIR: dataDir, PORT: port });
      other.close();
      expect(code).toBe(1);
      expect(stdout).toBe('');
      expect(stderr).toMatch(oneLine);
      expect(stderr).toBe(
        `latchkey: Port ${port} is in use by another program: set PORT to another, for example PORT=${Number(port) + 1} npm start\n`,
      );
    }));

  it.each([
    ['no such host', 'cannot be found (ENOTFOUND)'],
    // Set aside for documentation: no machine has it.
    ['192.0.2.1', 'is no address of this machine'],
  ])('ends with 1 and one line that names HOST when it is %s (CONFIG-24)', (HOST, problem) =>
    withDirectory(async (dataDir) => {
      expect(await ServerProcess.startAndEnd({ DATA_DIR: dataDir, HOST })).toMatchObject({
        code: 1,
        stdout: '',
        stderr: `latchkey: HOST ${HOST} ${problem}: set HOST to an address of this machine, for example HOST=127.0.0.1\n`,
      });
    }),
  );

  it.each([
    ['EACCES', 'Port 443 needs more rights than this user has: set PORT to another, for example PORT=3000 npm start'],
    ['EAFNOSUPPORT', 'HOST 127.0.0.1 and PORT 443 cannot be listened on (EAFNOSUPPORT): choose others'],
  ])('ends with 1 and one line when listening fails with %s (CONFIG-24)', (code, problem) =>
    withDirectory(async (dataDir) => {
      // Who runs the tests may well be allowed to take the port: the refusal of the operating system is made up.
      const refusing = join(dataDir, 'refusing.cjs');
      writeFileSync(
        refusing,
        `require('node:net').Server.prototype.listen = function () {
          const error = Object.assign(new Error('listen ${code}'), { code: '${code}', syscall: 'listen' });
          process.nextTick(() => this.emit('error', error));
          return this;
        };`,
      );
      const environment = { DATA_DIR: dataDir, PORT: '443', NODE_OPTIONS: `--require=${refusing}` };
      const end = await ServerProcess.startAndEnd(environment);
      expect(end).toMatchObject({ code: 1, stdout: '', stderr: `latchkey: ${problem}\n` });
    }),
  );

  it('ends with 1 and one line for a wrong value, in the environment or the file (CONFIG-24)', () =>
    withDirectory(async (dataDir) => {
      const wrong = await ServerProcess.startAndEnd({ DATA_DIR: dataDir, PORT: '70000' });
      expect(wrong).toMatchObject({
        code: 1,
        stdout: '',
        stderr: 'latchkey: PORT is "70000": it must be at most 65535\n',
      });
      const level = await ServerProcess.startAndEnd({ DATA_DIR: dataDir, LOG_LEVEL: 'verbose' });
      expect(level.code).toBe(1);
      expect(level.stderr).toBe(
        'latchkey: LOG_LEVEL is "verbose": it must be trace, debug, info, warn, error, fatal or silent\n',
      );
      writeFileSync(join(dataDir, 'latchkey.config.json'), '{ "METRICS": "everywhere" }');
      const inFile = await ServerProcess.startAndEnd({ DATA_DIR: dataDir }, dataDir);
      expect(inFile.code).toBe(1);
      expect(inFile.stderr).toBe('latchkey: METRICS is "everywhere": it must be local, on or off\n');
      const secret = await ServerProcess.startAndEnd({
        DATA_DIR: dataDir,
        JWT_SECRET: 'change-me-change-me-change-me-change-me',
      });
      expect(secret.code).toBe(1);
      expect(secret.stderr).toMatch(oneLine);
      expect(secret.stderr).not.toContain('change-me');
    }));

  it('ends with 1 and one line when another process serves the same directory (STORE-11)', () =>
    withDirectory(async (dataDir) => {
      const first = await ServerProcess.start({ DATA_DIR: dataDir });
      const { code, stdout, stderr } = await ServerProcess.startAndEnd({ DATA_DIR: dataDir });
      expect({ code, stdout }).toEqual({ code: 1, stdout: '' });
      expect(stderr).toMatch(oneLine);
      expect(stderr).toContain(`Another server is using DATA_DIR ${dataDir}`);
      expect((await first.call('GET', '/org/exists')).status).toBe(200);
      // A killed server holds nothing.
      await first.end('SIGKILL');
      const next = await ServerProcess.start({ DATA_DIR: dataDir });
      expect((await next.end('SIGTERM')).code).toBe(0);
    }));

  it('ends with 1 and one line for a directory that cannot be made and a damaged store (CONFIG-3, STORE-10)', () =>
    withDirectory(async (dataDir) => {
      writeFileSync(join(dataDir, 'file'), '');
      const noDirectory = await ServerProcess.startAndEnd({ DATA_DIR: join(dataDir, 'file', 'below') });
      expect(noDirectory.code).toBe(1);
      expect(noDirectory.stderr).toMatch(oneLine);
      writeFileSync(
        join(dataDir, 'latchkey.db'),
        'this is no store, but a text that is long enough to be looked at\n'.repeat(100),
      );
      const damaged = await ServerProcess.startAndEnd({ DATA_DIR: dataDir, DATABASE_URL: '' });
      expect(damaged.code).toBe(1);
      expect(damaged.stderr).toMatch(oneLine);
      expect(damaged.stderr).toContain('is damaged: restore it from a backup');
    }));
});

describe('standard output', () => {
  it('is JSON lines when it is no terminal, at the most talkative level too, and holds no secret (RUN-6, PASSWORD-6, FIT-102, FIT-105)', () =>
    withDirectory(async (dataDir) => {
      const server = await ServerProcess.start({ DATA_DIR: dataDir, LOG_LEVEL: 'trace', SMPT_URL: 'smtp://x' });
      const session = await server.setUp();
      const { body } = await server.call('POST', '/personal-access-tokens', { token: session, body: { name: 'used' } });
      const token: string = body.token.accessToken;
      const pair = await server.signIn();
      await server.call('POST', '/userAccount/refresh/token', { token: pair.refreshToken });
      await server.call('GET', '/org', { token });
      await server.call('GET', `/org?token=${token}`, { token: `${token}x` });
      await server.call('POST', '/userAccount/authenticate', {
        body: { method: 'password', credentials: { password } },
      });
      await server.call('DELETE', `/personal-access-tokens/${body.token.id}`, { token });
      const { stdout, stderr } = await server.end('SIGTERM');
      expect(stderr).toBe('');
      const lines = stdout
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line));
      expect(lines.length).toBeGreaterThan(8);
      const level = expect.stringMatching(/^(trace|debug|info|warn|error|fatal)$/);
      const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      for (const line of lines) expect(line).toMatchObject({ level, time });
      const tokens = [session, token, pair.accessToken, pair.refreshToken].map((jwt) => jwt.replace('lkpat_', ''));
      expect(lines).toContainEqual(
        expect.objectContaining({ level: 'warn', msg: 'the variable SMPT_URL has no effect: did you mean SMTP_URL?' }),
      );
      for (const secret of [password, ...tokens]) expect(stdout).not.toContain(secret);
    }));
});
