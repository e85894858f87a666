import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { withDirectory } from '../support/server-process.ts';

const scripts = resolve(import.meta.dirname, '../../../scripts');
/** A first start in small: a step that shows what it is at, and one that Ctrl-C ends. */
const program = `
import { progress } from '${scripts}/progress.mjs';
import { exitWith, run, StepError } from '${scripts}/steps.mjs';
try {
  await progress('Installing', async (show) => {
    show('compiling SQLite');
    await run('sleep', ['1.2']);
  });
  await progress('Building', async () => {
    setTimeout(() => process.kill(process.pid, 'SIGINT'), 50);
    const { code } = await run('sleep', ['60']);
    if (code !== 0) throw new StepError('it does not compile');
  });
} catch (error) {
  exitWith(error);
}
`;

async function shownBy(command: string, args: readonly string[]) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: child.exitCode, shown: stdout + stderr };
}

describe('the steps of a first start', () => {
  it('show what they are at and the seconds, and what a signal ends has not failed (FIT-109)', () =>
    withDirectory(async (directory) => {
      const file = join(directory, 'steps.mjs');
      writeFileSync(file, program);
      const terminal = await shownBy('script', ['-qec', `'${process.execPath}' '${file}'`, '/dev/null']);
      expect(terminal.code).toBe(130);
      expect(terminal.shown).toMatch(/Installing… compiling SQLite 1\.\d s/);
      expect(terminal.shown).toMatch(/Installing… \d\.\d s\r?\n/);
      expect(terminal.shown).toMatch(/Building… interrupted\r?\n$/);
      const plain = await shownBy(process.execPath, [file]);
      expect(plain.code).toBe(130);
      expect(plain.shown).toMatch(/^Installing… \d\.\d s\nBuilding… interrupted\n$/);
    }));
});
