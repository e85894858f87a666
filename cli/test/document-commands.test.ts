import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { describe, expect, it } from 'vitest';
import { documents, documentText, root } from '../../server/test/support/documents.ts';
import { commands } from '../src/commands.ts';

interface Named {
  readonly path: string;
  readonly line: string;
}

/** The code of the documents, in spans and blocks, one command per line; continued lines are joined. */
const code: readonly Named[] = documents.flatMap(({ path, text: document }) => {
  const joined = document.replace(/ \\\n\s*/g, ' ');
  const blocks = [...joined.matchAll(/^```\w*\n([\s\S]*?)^```$/gm)].flatMap(([, block = '']) => block.split('\n'));
  const indented = [...joined.matchAll(/^ {4,}(\S.*)$/gm)].map(([, line = '']) => line);
  const spans = [...joined.replace(/^```[\s\S]*?^```$/gm, '').matchAll(/`([^`]+)`/g)].map(([, span = '']) => span);
  return [...blocks, ...indented, ...spans.map((span) => span.replace(/\s+/g, ' '))].map((line) => ({ path, line }));
});

const flagsIn = (line: string) => [...line.matchAll(/(?<=^|\s)--([a-z][a-z-]*)/g)].map(([, flag = '']) => flag);
const toFlag = (key: string) => key.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
const byLength = [...commands].sort((one, other) => other.name.length - one.name.length);
const groups = new Set(commands.map(({ name }) => name.split(' ')[0] ?? ''));

/** Returns the part of a command after `latchkey`; `null` if the line does not call it. */
function callIn(line: string): string | null {
  const form = new RegExp(`(?:^|[\\s(;&/])latchkey(?:\\.js)? ((?:${[...groups].join('|')}|--help)\\b[^;&|)#]*)`);
  return form.exec(line)?.[1] ?? null;
}

const calls = code.flatMap((named) => {
  const call = callIn(named.line);
  return call === null ? [] : [{ ...named, call }];
});

describe('commands in the documents', () => {
  it('are looked at', () => {
    expect(calls.length).toBeGreaterThan(60);
  });

  it('are there, with the options that they are given (CLI-5)', () => {
    const wrong = calls.filter(({ call }) => {
      const known = byLength.find(({ name }) => call === name || call.startsWith(`${name} `));
      const flags = flagsIn(call);
      if (!known) return !groups.has(call.trim()) && flags.some((flag) => flag !== 'help');
      const options = [...Object.keys(known.options).map(toFlag), 'json', 'help'];
      return flags.some((flag) => !options.includes(flag));
    });
    expect(wrong).toEqual([]);
  });

  it('have a section each in their guide, which names their options', () => {
    const guide = documentText('docs/guides/command.md');
    const sections = guide.split(/^## /m).slice(1);
    const missing = commands.flatMap(({ name, options }) => {
      const [first = '', second = ''] = name.split(' ');
      // Imports have a guide of their own.
      const further = first === 'import' ? documentText('docs/guides/import.md') : '';
      const section = sections.find((part) => {
        const heading = part.split('\n')[0] ?? '';
        return heading.includes(`\`latchkey ${first}`) && (second === '' || heading.includes(second));
      });
      if (section === undefined) return [`latchkey ${name}`];
      const wanted = Object.keys(options).filter((key) => !['dataDir', 'json', 'file'].includes(key));
      const missed = wanted.filter((key) => !`${section}${further}`.includes(`--${toFlag(key)}`));
      return missed.map((key) => `${name} --${toFlag(key)}`);
    });
    expect(missing).toEqual([]);
  });
});

const scripts: Readonly<Record<string, string>> = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')).scripts;

/** Returns the output of an npm script with `--help`. */
async function helpOf(script: string): Promise<string> {
  const [, program = ''] = /\bnode (.+)$/.exec(scripts[script] ?? '') ?? [];
  const child = spawn(process.execPath, [...program.split(' '), '--help'], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [printed] = await Promise.all([text(child.stdout), once(child, 'close')]);
  return printed;
}

describe('npm in the documents', () => {
  const uses = code.flatMap(({ path, line }) =>
    [...line.matchAll(/\bnpm (?:run ([\w:-]+)|(start|test)\b)(?: -- ([^#;&|]*))?/g)].map(
      ([, script, own = '', options = '']) => ({
        path,
        script: script ?? own,
        options,
      }),
    ),
  );

  it('runs scripts that are there', () => {
    expect(uses.length).toBeGreaterThan(30);
    expect(uses.filter(({ script }) => !(script in scripts))).toEqual([]);
  });

  it.each(['test', 'bench', 'faults'])('gives %s options that its help knows', async (script) => {
    const help = await helpOf(script);
    const given = uses.filter((use) => use.script === script || use.script === `${script}:all`);
    expect(given.length).toBeGreaterThan(1);
    const unknown = given.flatMap(({ options }) => flagsIn(options).filter((flag) => !help.includes(`--${flag}`)));
    expect(unknown).toEqual([]);
  });

  it('names the suites of faults that there are', async () => {
    const help = await helpOf('faults');
    const kinds = [...help.matchAll(/^ {2}(\w+) {2,}\S/gm)].map(([, kind = '']) => kind);
    const readme = documentText('README.md');
    expect(kinds.length).toBeGreaterThan(4);
    expect(kinds.filter((kind) => !readme.includes(`\`${kind}\``) && !readme.includes(`faults -- ${kind}`))).toEqual(
      [],
    );
  });
});
