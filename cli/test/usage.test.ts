import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { ensureServerIsBuilt } from '../../server/test/support/server-process.ts';
import { commands } from '../src/commands.ts';
import { latchkey, root } from './command-process.ts';

beforeAll(ensureServerIsBuilt);

describe('latchkey --help', () => {
  const groups = new Set(commands.flatMap(({ name }) => (name.includes(' ') ? [name.split(' ')[0] ?? ''] : [])));
  const names = ['', ...groups, ...commands.map(({ name }) => name)].sort();

  it('tells of every command and option, with examples and exit codes (CLI-5, CLI-6)', async () => {
    const shown: string[] = [];
    for (const name of names) {
      const args = [...name.split(' ').filter(Boolean), '--help'];
      const { code, stdout, stderr } = await latchkey(args);
      expect({ name, code, stderr }).toEqual({ name, code: 0, stderr: '' });
      shown.push(`$ latchkey ${args.join(' ')}\n${stdout}`);
    }
    await expect(shown.join('\n'), 'stale: npm run gen writes it').toMatchFileSnapshot('snapshots/help.txt');
  });

  it('has the version of package.json (FIT-100)', async () => {
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    expect(await latchkey(['--version'])).toMatchObject({ code: 0, stdout: `${version}\n`, stderr: '' });
  });

  it('has for every command examples that it takes (CLI-5)', () => {
    for (const { name, examples, details, options } of commands) {
      expect(examples.length, name).toBeGreaterThan(0);
      expect(details, name).not.toBe('');
      for (const example of examples) {
        expect(example.startsWith(name), example).toBe(true);
        const flags = [...example.matchAll(/--([a-z-]+)/g)].map((match) => match[1] ?? '');
        const known = Object.keys(options).map((key) => key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`));
        expect(flags.filter((flag) => ![...known, 'json'].includes(flag))).toEqual([]);
      }
    }
  });

  it('is there from the root of a checkout as well', async () => {
    const { code, stdout } = await latchkey(['--help'], { file: `${root}/latchkey` });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^Usage: latchkey /);
  });
});

describe('a wrong command line', () => {
  it.each([
    [[], 'name a command'],
    [['org'], 'name a command'],
    [['organization'], "unknown command 'organization'"],
    [['org', 'destroy'], "unknown command 'destroy' (Did you mean restore?)"],
    [['org', 'status', '--datadir', 'x'], "unknown option '--datadir' (Did you mean --data-dir?)"],
    [['org', 'status', 'now'], "too many arguments for 'status'. Expected 0 arguments but got 1."],
    [['org', 'status', '--data-dir'], "option '--data-dir <directory>' argument missing"],
  ])('ends with 2 and one line, of JSON where that is asked for: %j (CLI-5, CLI-6)', async (args, problem) => {
    const line = `${problem}; see latchkey --help`;
    expect(await latchkey(args)).toMatchObject({ code: 2, stdout: '', stderr: `latchkey: ${line}\n` });
    const { code, stdout, stderr } = await latchkey([...args, '--json']);
    // Where a value is missing, the next word is taken for it.
    if (args.at(-1) === '--data-dir') return;
    expect({ code, stdout }).toEqual({ code: 2, stdout: '' });
    expect(JSON.parse(stderr)).toEqual({ error: { code: 'USAGE', message: line } });
  });

  it.each([
    [['org', 'status', '--data-dir', ''], '--data-dir must not be empty'],
    [['seed'], '--users is missing'],
    [['seed', '--users', '0'], '--users must be a whole number from 1 to 1000000, not "0"'],
    [['seed', '--users', 'ten'], '--users must be a whole number from 1 to 1000000, not "ten"'],
    [['seed', '--users', '10', '--groups=-1'], '--groups must be a whole number from 0 to 1000, not "-1"'],
  ])('ends with 2 and one line for a wrong value: %j (CLI-6)', async (args, problem) => {
    expect(await latchkey(args)).toMatchObject({ code: 2, stdout: '', stderr: `latchkey: ${problem}\n` });
  });
});
