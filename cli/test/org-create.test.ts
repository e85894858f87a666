import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { text } from 'node:stream/consumers';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { ensureServerIsBuilt, ServerProcess, withDirectory } from '../../server/test/support/server-process.ts';
import { latchkey, root } from './command-process.ts';

beforeAll(ensureServerIsBuilt);
vi.setConfig({ testTimeout: 60_000 });

const password = 'Marble-Kettle-Orbit-7';
const options = ['--name', 'Example Ltd', '--email', 'ada@example.com', '--full-name', 'Ada Lovelace'];

/** Runs the command as a process that reads its standard input. */
async function withInput(args: readonly string[], input: string, environment: Record<string, string>) {
  const child = spawn(process.execPath, [`${root}/dist/bin/latchkey.js`, ...args], {
    env: { PATH: process.env['PATH'] ?? '', ...environment },
  });
  child.stdin.end(input);
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: child.exitCode, stdout, stderr };
}

describe('latchkey org create', () => {
  it('0: creates the organization with an administrator who can sign in, once (FIT-106)', () =>
    withDirectory(async (dataDir) => {
      const server = await ServerProcess.start({ DATA_DIR: dataDir });
      const environment = Object.fromEntries(
        Object.entries(server.env).filter(([name]) => name === 'DATABASE_URL' || name === 'DATA_DIR'),
      );
      const args = ['org', 'create', ...options, '--password-stdin'];
      const refused = await withInput(args, 'Password1!\n', environment);
      expect([refused.code, refused.stdout]).toEqual([3, '']);
      expect(refused.stderr).toMatch(/^latchkey: The password is too easy to guess[^\n]+\n$/);
      const badName = ['org', 'create', ...options.slice(2), '--name', ' ', '--password-stdin'];
      expect((await withInput(badName, password, environment)).stderr).toBe(
        'latchkey: --name is required for a business account\n',
      );

      const made = await withInput([...args, '--json'], `${password}\r\n`, environment);
      expect(made).toMatchObject({ code: 0, stderr: '' });
      const { organization } = JSON.parse(made.stdout);
      expect(organization).toMatchObject({ registeredName: 'Example Ltd', contactEmail: 'ada@example.com' });
      expect(made.stdout).not.toContain(password);
      const session = await server.signIn({ email: 'ada@example.com', password });
      expect((await server.call('GET', '/org', { token: session.accessToken })).body.registeredName).toBe(
        'Example Ltd',
      );

      const again = await withInput(args, password, environment);
      const message = 'latchkey: This store has an organization already: latchkey org status shows it\n';
      expect(again).toEqual({ code: 3, stdout: '', stderr: message });
      expect((await server.end('SIGTERM')).code).toBe(0);
    }));

  it('2: without a terminal, what is missing is named (FIT-106)', () =>
    withDirectory(async (dataDir) => {
      const server = await ServerProcess.start({ DATA_DIR: dataDir });
      const environment = { ...server.env };
      expect(await latchkey(['org', 'create'], { environment })).toMatchObject({
        code: 2,
        stderr: 'latchkey: --name is missing\n',
      });
      expect((await latchkey(['org', 'create', ...options], { environment })).stderr).toMatch(
        /^latchkey: the password is missing: /,
      );
      expect((await server.end('SIGTERM')).code).toBe(0);
    }));
});
