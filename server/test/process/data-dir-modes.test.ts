import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { ensureServerIsBuilt, ServerProcess, withDirectory } from '../support/server-process.ts';

const mode = (path: string) => statSync(path).mode & 0o777;

beforeAll(ensureServerIsBuilt);

describe('the files of a server', () => {
  it("are their owner's alone, while it runs and after, whatever the umask (CONFIG-3)", () =>
    withDirectory(async (directory) => {
      const umask = process.umask(0o000);
      const dataDir = join(directory, 'new', 'data');
      try {
        const server = await ServerProcess.start({ DATA_DIR: dataDir });
        const token = await server.setUp();
        await server.call('POST', '/personal-access-tokens', { token, body: { name: 'used' } });
        const files = readdirSync(dataDir);
        const keys = ['signing-keys.json', 'encryption-key'];
        expect(files).toEqual(expect.arrayContaining(['latchkey.db', 'latchkey.db-wal', 'latchkey.db-shm', ...keys]));
        expect(mode(dataDir)).toBe(0o700);
        for (const file of files) expect([file, mode(join(dataDir, file))]).toEqual([file, 0o600]);
        await server.end('SIGTERM');
        for (const file of readdirSync(dataDir)) expect([file, mode(join(dataDir, file))]).toEqual([file, 0o600]);
      } finally {
        process.umask(umask);
      }
    }));

  it('are so in a directory that was there already (CONFIG-3)', () =>
    withDirectory(async (directory) => {
      const dataDir = join(directory, 'data');
      mkdirSync(dataDir, { mode: 0o755 });
      const server = await ServerProcess.start({ DATA_DIR: dataDir });
      for (const file of readdirSync(dataDir)) expect([file, mode(join(dataDir, file))]).toEqual([file, 0o600]);
      expect((await server.end('SIGTERM')).code).toBe(0);
    }));
});
