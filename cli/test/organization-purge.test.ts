import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { beforeAll, describe, expect, it } from 'vitest';
import { ensureServerIsBuilt, withDirectory } from '../../server/test/support/server-process.ts';
import { TestApp } from '../../server/test/support/test-app.ts';
import { latchkeyJson, root } from './command-process.ts';

beforeAll(ensureServerIsBuilt);

async function makeDeletedOrganization(dataDir: string, users: number): Promise<void> {
  const { token } = await latchkeyJson('seed', '--users', String(users), '--data-dir', dataDir, '--print-token');
  const app = await TestApp.start({ DATA_DIR: dataDir });
  expect((await app.with(token).delete('/org')).status).toBe(200);
  await app.stop();
}

/** Runs `latchkey org purge` at a terminal of its own, where the operator types `line`. */
async function purgeAtTerminal(dataDir: string, line: string) {
  const command = `'${process.execPath}' '${join(root, 'dist/bin/latchkey.js')}' org purge --data-dir '${dataDir}'`;
  const terminal = spawn('script', ['-qec', command, '/dev/null'], {
    env: { PATH: process.env['PATH'] ?? '' },
    stdio: ['pipe', 'pipe', 'ignore'],
  });
  terminal.stdin.end(line);
  const [shown] = await Promise.all([text(terminal.stdout), once(terminal, 'close')]);
  return { code: terminal.exitCode, shown };
}

describe('latchkey org purge', () => {
  it('asks at a terminal, and takes nothing but the slug for an answer (CLI-6, CLI-9)', () =>
    withDirectory(async (dataDir) => {
      await makeDeletedOrganization(dataDir, 30);
      const wrong = await purgeAtTerminal(dataDir, 'org-1002\n');
      expect(wrong.code).toBe(3);
      expect(wrong.shown).toContain('Purging cannot be undone. Type org-1001 to purge it: ');
      expect(wrong.shown).toContain('latchkey: That is not org-1001: nothing was purged');
      expect(await latchkeyJson('org', 'status', '--data-dir', dataDir)).toMatchObject({ state: 'deleted' });
      const right = await purgeAtTerminal(dataDir, 'org-1001\n');
      expect(right.code).toBe(0);
      expect(right.shown).toContain('Purged org-1001. Rows removed:\r\n');
      expect(right.shown).toContain('\r\n  users: 31\r\n');
      expect(await latchkeyJson('org', 'status', '--data-dir', dataDir)).toMatchObject({ state: 'none' });
    }));

  it('overwrites what it removes (CLI-9)', () =>
    withDirectory(async (dataDir) => {
      await makeDeletedOrganization(dataDir, 2_000);
      const found = (text: string) => readFileSync(join(dataDir, 'latchkey.db'), 'utf8').split(text).length - 1;
      const log = join(dataDir, 'latchkey.db-wal');
      const before = { designations: found('Ingénieure'), hashes: found('$argon2id$') };
      expect(before.designations).toBeGreaterThan(100);
      expect(before.hashes).toBe(1);
      await latchkeyJson('org', 'purge', '--yes', '--data-dir', dataDir);
      // Without a running server the command empties the log, which may contain the rows, too.
      expect(existsSync(log)).toBe(false);
      expect(found('$argon2id$')).toBe(0);
      // Where a page was split, a copy may have stayed behind that no row owns any more.
      expect(found('Ingénieure')).toBeLessThan(before.designations / 20);
      // What the event log has is kept.
      expect(found('.3000@example.com')).toBeGreaterThan(0);
    }));
});
