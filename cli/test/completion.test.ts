import { execFileSync } from 'node:child_process';
import { beforeAll, describe, expect, it } from 'vitest';
import { ensureServerIsBuilt, withDirectory } from '../../server/test/support/server-process.ts';
import { commands } from '../src/commands.ts';
import { latchkey, latchkeyJson } from './command-process.ts';

let script = '';
beforeAll(async () => {
  ensureServerIsBuilt();
  script = (await latchkey(['completion', 'bash'])).stdout;
});

/** What bash offers when the cursor is at the end of a line. */
function offered(line: string, cwd = '/'): readonly string[] {
  const words = line.split(' ');
  const program = `${script}
COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); _latchkey; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const said = execFileSync('bash', ['-c', program, 'bash', ...words], { cwd, encoding: 'utf8' });
  return said.split('\n').filter(Boolean).sort();
}

describe('latchkey completion bash', () => {
  it('is a script that bash reads without a word', () => {
    expect(execFileSync('bash', ['-c', `${script}\ncomplete -p latchkey`], { encoding: 'utf8' })).toContain(
      '_latchkey',
    );
  });

  it('offers each command at its place, and each option of the command (CLI-23)', () => {
    const first = new Set(commands.map(({ name }) => name.split(' ')[0] ?? ''));
    expect(offered('latchkey ')).toEqual([...first, '--help', '--json'].sort());
    for (const { name, options } of commands) {
      const [noun = '', verb] = name.split(' ');
      expect(offered(verb === undefined ? 'latchkey ' : `latchkey ${noun} `), name).toContain(verb ?? noun);
      const flags = Object.keys(options).map(
        (key) => `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`,
      );
      expect(offered(`latchkey ${name} --`), name).toEqual(['--help', '--json', ...flags].sort());
    }
  });

  it.each([
    ['latchkey or', ['org']],
    ['latchkey org re', ['restore']],
    ['latchkey --json org st', ['status']],
    ['latchkey org status --data-dir /tmp --j', ['--json']],
    ['latchkey audit export --format ', ['csv', 'jsonl']],
    ['latchkey seed --users ', []],
    ['latchkey nothing-such or', ['org']],
  ])('completes %j (CLI-23)', (line, words) => {
    expect(offered(line)).toEqual(words);
  });

  it.each([
    ['latchkey or', ['org']],
    ['latchkey org re', ['restore']],
    ['latchkey --json org st', ['status']],
    ['latchkey audit export --format ', ['csv', 'jsonl']],
    ['latchkey org status --j', ['--json']],
  ])('completes %j in zsh too (CLI-23)', async (line, words) => {
    const { stdout } = await latchkey(['completion', 'zsh']);
    // As zsh runs what was written for bash; what does not begin as the last word does it leaves out by itself.
    const program = `${stdout}
emulate ksh; COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 )); _latchkey; printf '%s\\n' "\${COMPREPLY[@]}"`;
    const said = execFileSync('zsh', ['-f', '-c', program, 'zsh', ...line.split(' ')], { encoding: 'utf8' });
    const begun = line.split(' ').at(-1) ?? '';
    const shown = said.split('\n').filter((word) => word !== '' && word.startsWith(begun));
    expect(shown.sort()).toEqual(words);
  });

  it('offers directories and files after options that take one (CLI-23)', () =>
    withDirectory(async (directory) => {
      execFileSync('mkdir', ['inner'], { cwd: directory });
      execFileSync('touch', ['file.txt'], { cwd: directory });
      expect(offered('latchkey org status --data-dir ', directory)).toEqual(['inner']);
      expect(offered('latchkey audit export --file ', directory)).toEqual(['file.txt', 'inner']);
    }));
});

describe('latchkey completion', () => {
  it.each(['bash', 'zsh', 'fish'])(
    '%s: names every command, and is the same in JSON (CLI-5, CLI-23)',
    async (shell) => {
      const { code, stdout, stderr } = await latchkey(['completion', shell]);
      expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
      expect(await latchkeyJson('completion', shell)).toEqual({ shell, script: stdout });
      for (const { name } of commands) expect(stdout).toContain(`'${name}'`);
    },
  );
});
