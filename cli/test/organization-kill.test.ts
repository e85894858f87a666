import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { someOf } from '../../server/test/support/effort.ts';
import { ensureServerIsBuilt } from '../../server/test/support/server-process.ts';
import { tablesOf } from '../../server/test/support/statement-watch.ts';
import { TestApp } from '../../server/test/support/test-app.ts';
import { latchkey, root } from './command-process.ts';

/** Loaded into the command's process: notes each statement of its transaction, and kills it before the one at KILL_AT. */
const killer = `
const { appendFileSync } = require('node:fs');
const { createRequire } = require('node:module');
const Sqlite = createRequire(process.env.ROOT)('better-sqlite3');
const memory = new Sqlite(':memory:');
const prototype = Object.getPrototypeOf(memory.prepare('SELECT 1'));
memory.close();
let writer = null;
let seen = 0;
for (const name of ['run', 'all', 'get']) {
  const original = prototype[name];
  prototype[name] = function (...args) {
    if (this.source === 'begin immediate') writer ??= this.database;
    if (this.database === writer) {
      seen += 1;
      appendFileSync(process.env.STATEMENTS, this.source.replaceAll('\\n', ' ') + '\\n');
      if (seen === Number(process.env.KILL_AT)) process.kill(process.pid, 'SIGKILL');
    }
    return original.apply(this, args);
  };
}
`;

describe('kill -9 of a command', () => {
  let directory: string;
  let deleted: string;
  let before: ReturnType<typeof tablesOf>;

  beforeAll(async () => {
    ensureServerIsBuilt();
    directory = mkdtempSync(join(tmpdir(), 'latchkey-test-'));
    deleted = join(directory, 'deleted');
    writeFileSync(join(directory, 'killer.cjs'), killer);
    const app = await TestApp.start({ DATA_DIR: deleted });
    const admin = await app.setUp();
    await app.member(admin, 'grace@example.com');
    await admin.token();
    await app.deleteOrganization();
    await app.stop();
    before = tablesOf({ dataDir: deleted });
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  /** Runs a command on a copy of the store and kills it before a statement; none is the one at 0. */
  async function runUntil(args: readonly string[], place: number) {
    const dataDir = join(directory, `${args[1]}-${place}`);
    const statements = join(directory, `${args[1]}-${place}.txt`);
    cpSync(deleted, dataDir, { recursive: true });
    const end = await latchkey([...args, '--data-dir', dataDir], {
      environment: {
        NODE_OPTIONS: `--require=${join(directory, 'killer.cjs')}`,
        ROOT: join(root, 'package.json'),
        STATEMENTS: statements,
        KILL_AT: String(place),
      },
    });
    return { ...end, dataDir, statements: readFileSync(statements, 'utf8').trimEnd().split('\n') };
  }

  it.each([
    ['restore', ['org', 'restore'], { statementsMin: 10, action: 'org.restored' }],
    ['purge', ['org', 'purge', '--yes'], { statementsMin: 14, action: 'org.purged' }],
  ])(
    'before any statement of org %s leaves everything as it was, and the next run succeeds (CLI-8, CLI-9, STORE-1)',
    async (name, args, { statementsMin, action }) => {
      const whole = await runUntil(args, 0);
      expect(whole).toMatchObject({ code: 0, stderr: '' });
      const { statements } = whole;
      expect(statements.length).toBeGreaterThan(statementsMin);
      expect([statements.at(0), statements.at(-1)]).toEqual(['begin immediate', 'commit']);
      const after = tablesOf({ dataDir: whole.dataDir });
      expect(after['audit_log']?.at(-1)).toMatchObject({ action });

      for (const place of someOf([...statements.keys()])) {
        const { code, signal, dataDir } = await runUntil(args, place + 1);
        expect({ code, signal }).toEqual({ code: null, signal: 'SIGKILL' });
        expect(tablesOf({ dataDir }), statements[place]).toEqual(before);
      }
      const { code } = await latchkey([...args, '--data-dir', join(directory, `${name}-${statements.length}`)]);
      expect(code).toBe(0);
    },
    120_000,
  );
});
