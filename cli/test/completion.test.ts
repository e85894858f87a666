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

/** What bash offers when the cursor is at the end of each line, all in one shell. */
function offeredForEach(lines: readonly string[], cwd = '/'): readonly (readonly string[])[] {
  const program = `${script}
while IFS= read -r line; do
  mapfile -t -d ' ' COMP_WORDS <<< "$line "; unset 'COMP_WORDS[-1]'
  COMP_CWORD=$(( \${#COMP_WORDS[@]} - 1 )); COMPREPLY=(); _latchkey; printf '%s\\n' "\${COMPREPLY[@]}" --
done`;
  const input = lines.map((line) => `${line}\n`).join('');
  const texts = execFileSync('bash', ['-c', program], { cwd, input, encoding: 'utf8' }).split(/^--\n/m);
  return lines.map((_, index) => (texts[index] ?? '').split('\n').filter(Boolean).sort());
}

const offered = (line: string, cwd?: string) => offeredForEach([line], cwd)[0];

describe('latchkey completion bash', () => {
  it('is a script that bash reads without a word', () => {
    expect(execFileSync('bash', ['-c', `${script}\ncomplete -p latchkey`], { encoding: 'utf8' })).toContain(
      '_latchkey',
    );
  });

  it('offers each command at its place, and each option of the command (CLI-23)', () => {
    const first = new Set(commands.map(({ name }) => name.split(' ')[0] ?? ''));
    expect(offered('latchkey ')).toEqual([...first, '--help', '--json'].sort());
    const asked = commands.map(({ name }) => {
      const [noun = '', verb] = name.split(' ');
      return { name, place: verb === undefined ? 'latchkey ' : `latchkey ${noun} `, word: verb ?? noun };
    });
    const places = offeredForEach(asked.map(({ place }) => place));
    const options = offeredForEach(asked.map(({ name }) => `latchkey ${name} --`));
    for (const [index, { name, options: own }] of commands.entries()) {
      const flags = Object.keys(own).map((key) => `--${key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`);
      expect(places[index], name).toContain(asked[index]?.word);
      expect(options[index], name).toEqual(['--help', '--json', ...flags].sort());
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
    // As zsh runs completions written for bash; it drops words with another prefix itself.
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
