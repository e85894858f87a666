import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ensureServerIsBuilt } from '../../server/test/support/server-process.ts';
import { latchkey, latchkeyJson, root } from './command-process.ts';
import { query, tablesAt } from './restored.ts';

/** Loaded into the command's process: notes each step by which it changes files or a store, and kills it before the one at KILL_AT. */
const killer = `
const fs = require('node:fs');
const { syncBuiltinESMExports } = require('node:module');
const { createRequire } = require('node:module');
const Sqlite = createRequire(process.env.ROOT)('better-sqlite3');
const append = fs.appendFileSync;
let seen = 0;
function step(name) {
  seen += 1;
  append(process.env.STEPS, name + '\\n');
  if (seen === Number(process.env.KILL_AT)) process.kill(process.pid, 'SIGKILL');
}
for (const name of ['renameSync', 'linkSync', 'mkdirSync', 'rmSync', 'fsyncSync']) {
  const original = fs[name];
  fs[name] = (...args) => {
    if (String(args[0]).includes(process.env.PLACE) || name === 'fsyncSync') step(name + ' ' + args.join(' '));
    return original(...args);
  };
}
syncBuiltinESMExports();
const memory = new Sqlite(':memory:');
const statement = Object.getPrototypeOf(memory.prepare('SELECT 1'));
memory.close();
const run = statement.run;
statement.run = function (...args) {
  if (this.source === 'commit') step(this.source);
  return run.apply(this, args);
};
`;

describe('kill -9 of latchkey restore', () => {
  let directory: string;
  let file: string;
  let before: ReturnType<typeof tablesAt>;

  beforeAll(async () => {
    ensureServerIsBuilt();
    directory = mkdtempSync(join(tmpdir(), 'latchkey-test-'));
    file = join(directory, 'one.lkb');
    const at = ['--data-dir', join(directory, 'present')];
    writeFileSync(join(directory, 'killer.cjs'), killer);
    await latchkeyJson('seed', '--users', '5', '--tokens', '5', ...at);
    await latchkeyJson('backup', '--to', file, ...at);
    const [token] = (await latchkeyJson('token', 'list', ...at)).tokens;
    await latchkeyJson('token', 'revoke', '--id', token.id, ...at);
    before = tablesAt(join(directory, 'present'));
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  /** Runs the command on a copy of the directory and kills it before a step; none is the one at 0. */
  async function runUntil(place: number) {
    const dataDir = join(directory, `at-${place}`);
    const steps = join(directory, `at-${place}.txt`);
    cpSync(join(directory, 'present'), dataDir, { recursive: true });
    const end = await latchkey(['restore', '--from', file, '--data-dir', dataDir], {
      environment: {
        NODE_OPTIONS: `--require=${join(directory, 'killer.cjs')}`,
        ROOT: join(root, 'package.json'),
        PLACE: dataDir,
        STEPS: steps,
        KILL_AT: String(place),
      },
    });
    return { ...end, dataDir, steps: readFileSync(steps, 'utf8').trimEnd().split('\n') };
  }

  const isRestored = (dataDir: string) =>
    query(dataDir, 'SELECT action FROM audit_log ORDER BY sequence').at(-1).action === 'store.restored';
  const revoked = (dataDir: string) =>
    query(dataDir, 'SELECT count(*) AS count FROM personal_access_tokens WHERE revoked_at IS NOT NULL')[0].count;

  it('before any step leaves the one store or the other, whole, and the next run succeeds (CLI-26)', async () => {
    const whole = await runUntil(0);
    expect(whole).toMatchObject({ code: 0, stderr: '' });
    const { steps } = whole;
    expect(steps.filter((step) => step.startsWith('renameSync'))).toHaveLength(1);
    expect(steps.length).toBeGreaterThan(12);
    const found: boolean[] = [];
    for (const [place, step] of steps.entries()) {
      const { code, signal, dataDir } = await runUntil(place + 1);
      expect({ step, code, signal }).toEqual({ step, code: null, signal: 'SIGKILL' });
      const isNew = isRestored(dataDir);
      found.push(isNew);
      expect(isNew ? before : tablesAt(dataDir), step).toEqual(before);
      expect([step, query(dataDir, 'PRAGMA integrity_check')]).toEqual([step, [{ integrity_check: 'ok' }]]);
      expect([step, revoked(dataDir)]).toEqual([step, 1]);
    }
    // One step, the renaming, is where the one becomes the other.
    const renaming = steps.findIndex((step) => step.startsWith('renameSync'));
    expect(found).toEqual(steps.map((_, place) => place > renaming));
    for (const place of [Math.floor(renaming / 2), renaming + 2]) {
      const { restored } = await latchkeyJson('restore', '--from', file, '--data-dir', join(directory, `at-${place}`));
      expect(restored.audit.ok).toBe(true);
      expect(isRestored(join(directory, `at-${place}`))).toBe(true);
    }
  }, 240_000);
});
