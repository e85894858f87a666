import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { secondConnection } from '../../server/test/support/second-connection.ts';
import { ensureServerIsBuilt, withDirectory } from '../../server/test/support/server-process.ts';
import { TestApp } from '../../server/test/support/test-app.ts';
import { latchkey } from './command-process.ts';

beforeAll(ensureServerIsBuilt);
// Each of many commands takes a second to start where the machine is busy.
vi.setConfig({ testTimeout: 60_000 });

const storeCommands = [
  ['org', 'status'],
  ['org', 'restore'],
  ['org', 'purge', '--yes'],
  ['admin', 'recover', '--reset-sign-in'],
  ['service', 'create', '--name=x', '--scopes=USER_LOOKUP'],
  ['service', 'list'],
  ['service', 'revoke', '--id=0123456789abcdef01234567'],
  ['token', 'list'],
  ['token', 'revoke', '--id=0123456789abcdef01234567'],
];

async function expectFailed(args: readonly string[], message: string): Promise<void> {
  expect(await latchkey(args)).toMatchObject({ code: 1, stdout: '', stderr: `latchkey: ${message}\n` });
}

describe('a command that needs a store', () => {
  it.each(storeCommands)('ends with 1 where there is none, and makes none: %s %s (CLI-6, CLI-7)', (...command) =>
    withDirectory(async (directory) => {
      const missing = join(directory, 'missing');
      const problem = (dataDir: string) =>
        `DATA_DIR ${dataDir} holds no store (latchkey.db): give the directory that the server uses`;
      await expectFailed([...command, '--data-dir', missing], problem(missing));
      expect(existsSync(missing)).toBe(false);
      const empty = join(directory, 'empty');
      mkdirSync(empty);
      writeFileSync(join(empty, 'latchkey.db'), '');
      const { code, stderr } = await latchkey([...command, '--data-dir', empty, '--json']);
      expect({ code, ...JSON.parse(stderr) }).toEqual({ code: 1, error: { code: 'FAILED', message: problem(empty) } });
      expect(readdirSync(empty)).toEqual(['latchkey.db']);
    }),
  );

  it('ends with 1 and one line for a path that cannot be read, a damaged store and a wrong configuration (STORE-10, CONFIG-24)', () =>
    withDirectory(async (directory) => {
      writeFileSync(join(directory, 'file'), '');
      const below = join(directory, 'file', 'below');
      const { code, stderr } = await latchkey(['org', 'status', '--data-dir', below]);
      expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringMatching(/^latchkey: DATA_DIR [^\n]+\n$/) });
      writeFileSync(join(directory, 'latchkey.db'), 'a text that is no store\n'.repeat(500));
      await expectFailed(
        ['org', 'status', '--data-dir', directory],
        `The store ${join(directory, 'latchkey.db')} is damaged: restore it from a backup`,
      );
      const environment = { DATA_DIR: directory, PORT: '70000' };
      expect(await latchkey(['org', 'status'], { environment })).toMatchObject({
        code: 1,
        stderr: 'latchkey: PORT is "70000": it must be at most 65535\n',
      });
    }));

  it('reads the same configuration as the server: the environment, the file, and --data-dir before both (CONFIG-21)', () =>
    withDirectory(async (directory) => {
      const dataDir = join(directory, 'store');
      await (await TestApp.start({ DATA_DIR: dataDir })).stop();
      writeFileSync(join(directory, 'latchkey.config.json'), JSON.stringify({ DATA_DIR: dataDir }));
      const found = { code: 0, stdout: 'No organization yet\n', stderr: '' };
      expect(await latchkey(['org', 'status'], { cwd: directory })).toMatchObject(found);
      const environment = { DATA_DIR: '/nowhere' };
      expect((await latchkey(['org', 'status'], { cwd: directory, environment })).code).toBe(1);
      const given = ['org', 'status', '--data-dir', 'store'];
      expect(await latchkey(given, { cwd: directory, environment })).toMatchObject(found);
      writeFileSync(join(directory, 'where'), dataDir);
      const inFile = { DATA_DIR_FILE: join(directory, 'where') };
      expect(await latchkey(['org', 'status'], { environment: inFile })).toMatchObject(found);
      expect(await latchkey(given, { cwd: directory, environment: inFile })).toMatchObject(found);
    }));

  it('ends with 1 for a store of an older schema, which it leaves alone, and of a newer one (CLI-7, STORE-10)', () =>
    withDirectory(async (dataDir) => {
      await (await TestApp.start({ DATA_DIR: dataDir })).stop();
      const connection = secondConnection({ dataDir });
      const latest = Number(connection.prepare('SELECT max(version) FROM schema_migrations').pluck().get());
      connection.exec(`DELETE FROM schema_migrations WHERE version = ${latest}`);
      const expectAllFailed = (message: string) =>
        Promise.all(storeCommands.map((command) => expectFailed([...command, '--data-dir', dataDir], message)));
      await expectAllFailed(
        `The store has schema ${latest - 1}, this release works with ${latest}: start the server, or run latchkey migrate`,
      );
      expect(connection.prepare('SELECT max(version) FROM schema_migrations').pluck().get()).toBe(latest - 1);
      connection.exec(`INSERT INTO schema_migrations VALUES (${latest + 1}, 'later', 0)`);
      await expectAllFailed(
        `The store has schema ${latest + 1}, this release knows ${latest}: start the newer release that wrote it`,
      );
      connection.close();
    }));

  it('waits while someone else is writing, and gives up with 1 after a while (CLI-6, CLI-7)', () =>
    withDirectory(async (dataDir) => {
      const app = await TestApp.start({ DATA_DIR: dataDir });
      await app.setUp();
      await app.deleteOrganization();
      await app.stop();
      const connection = secondConnection({ dataDir });
      connection.exec('BEGIN IMMEDIATE');
      const { code, stderr } = await latchkey(['org', 'restore', '--data-dir', dataDir]);
      expect({ code, stderr }).toEqual({
        code: 1,
        stderr: 'latchkey: The store cannot be used right now: database is locked\n',
      });
      const waiting = latchkey(['org', 'restore', '--data-dir', dataDir]);
      setTimeout(() => connection.exec('COMMIT'), 2_000);
      expect((await waiting).code).toBe(0);
      connection.close();
    }));
});
