import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { variables } from '../src/config/config.ts';
import { TestApp } from './test-app.ts';
import { TestClock } from './test-clock.ts';

/** One block that a reader pastes, and what the README says of it. */
interface Step {
  readonly commands: string;
  /** The answer that is shown after the block; empty when none is. */
  readonly shown: string;
  /** The status that the text after the block names. */
  readonly status: number | null;
}

/** What a pasted block printed, and how its last command ended. */
interface Outcome {
  readonly exitCode: number;
  readonly output: string;
}

const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');
const walkHeading = '\n## The walk';
const fence = /^```(\w+)\n([\s\S]*?)^```$/gm;
const mark = '--- end of a block, exit code ';

function readSteps(): Step[] {
  const from = readme.indexOf(walkHeading);
  const walk = readme.slice(from, readme.indexOf('\n## ', from + walkHeading.length));
  const blocks = [...walk.matchAll(fence)].map(({ 1: language = '', 2: content = '', index }) => ({
    language,
    content,
    index,
  }));
  return blocks.flatMap(({ language, content, index }, place) => {
    if (language !== 'sh') return [];
    const next = blocks.at(place + 1);
    const said = /\bstatus (\d{3})\b/.exec(walk.slice(index, next?.index))?.[1];
    return [
      {
        commands: content,
        shown: next === undefined || next.language === 'sh' ? '' : next.content.trim(),
        status: said === undefined ? null : Number(said),
      },
    ];
  });
}

/**
 * Runs the blocks as they are printed in one shell. A person takes a moment between them; here one moment is needed, for
 * the last use of the token to be written before the list is asked for it.
 */
async function paste(steps: readonly Step[], environment: Readonly<Record<string, string>>): Promise<Outcome[]> {
  const home = mkdtempSync(join(tmpdir(), 'latchkey-walk-'));
  const pause = (commands: string) => (commands.includes('/personal-access-tokens/admin') ? 'sleep 1.5\n' : '');
  const script = steps.map(({ commands }) => `${pause(commands)}${commands}echo "${mark}$?"\n`).join('');
  try {
    const shell = spawn('bash', ['-c', script], {
      cwd: home,
      env: { PATH: process.env['PATH'], HOME: home, ...environment },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    shell.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    const exitCode = await new Promise((resolve, reject) => {
      shell.on('error', reject);
      shell.on('close', resolve);
    });
    expect(exitCode).toBe(0);
    const outcomes = output.matchAll(new RegExp(`([\\s\\S]*?)${mark}(\\d+)\n`, 'g'));
    return [...outcomes].map((match) => ({ output: (match[1] ?? '').trim(), exitCode: Number(match[2]) }));
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

/** A value with everything forgotten that differs from run to run: what stays are keys, types and fixed words. */
function shapeOf(value: unknown, name = ''): unknown {
  if (Array.isArray(value)) return value.map((item) => shapeOf(item, name));
  if (value !== null && typeof value === 'object') {
    return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, shapeOf(item, key)]));
  }
  return /^(_?id|userId|orgId|requestId|accessToken)$|At$/.test(name) ? typeof value : value;
}

/** The shape of an answer in JSON; of any other text, the text itself. */
function shapeOfText(text: string): unknown {
  return /^[[{]/.test(text) ? shapeOf(JSON.parse(text)) : text;
}

/** A block's output, taken apart: the answer, and the status below it where curl was told to print it. */
function readOutput(output: string): { readonly text: string; readonly status: number | null } {
  const match = /^([\s\S]*)\n(\d{3})$/.exec(output);
  return match ? { text: match[1] ?? '', status: Number(match[2]) } : { text: output, status: null };
}

const createdToken = z.object({ token: z.object({ id: z.string(), accessToken: z.string() }) });

describe('the walk of the README', () => {
  const steps = readSteps();
  let app: TestApp;
  let outcomes: Outcome[];

  beforeAll(async () => {
    app = await TestApp.start({}, new TestClock(Date.now()));
    outcomes = await paste(steps, { LATCHKEY: app.url });
  });
  afterAll(() => app.close());

  const answer = (place: number) => readOutput(outcomes[place]?.output ?? '');
  const json = (place: number): unknown => JSON.parse(answer(place).text);

  it('has eight blocks, each of which ends well (RUN-11)', () => {
    expect(steps).toHaveLength(8);
    expect(outcomes.map(({ exitCode }) => exitCode)).toEqual(steps.map(() => 0));
  });

  it('prints the answers that it shows', () => {
    const printed = steps.map((_, place) => shapeOfText(answer(place).text));
    expect(printed).toEqual(steps.map(({ shown }) => shapeOfText(shown)));
  });

  it('names the statuses that it gets', () => {
    expect(steps.map(({ status }) => status)).toEqual([null, 200, 200, 201, 200, 200, 200, 401]);
    // Two blocks keep their answer in a variable, and print no status.
    expect(outcomes.map((_, place) => answer(place).status)).toEqual([null, 200, null, null, 200, 200, 200, 401]);
  });

  it('makes an organization and signs its administrator in', () => {
    expect(json(1)).toMatchObject({ slug: 'org-1001', onBoardingStatus: 'notConfigured' });
    expect(answer(2).text).toBe('Fully authenticated');
  });

  it('makes a token that works, is seen and dies when it is revoked', async () => {
    const { id, accessToken } = createdToken.parse(json(3)).token;
    expect(accessToken).toMatch(/^lkpat_eyJ/);
    expect(json(4)).toMatchObject([{ fullName: 'Ada Lovelace' }]);
    expect(json(5)).toMatchObject({ data: [{ id }] });
    expect(json(7)).toMatchObject({ error: { code: 'TOKEN_REVOKED' } });
    const [, reason] = /"reason": "([^"]+)"/.exec(steps[6]?.commands ?? '') ?? [];
    const revocation = { action: 'token.revoked', subject_id: id, details: { reason } };
    expect(await app.audit()).toContainEqual(expect.objectContaining(revocation));
  });
});

describe('the configuration table of the README', () => {
  it('has every variable that the service reads, and no other', () => {
    const listed = [...readme.matchAll(/^\| `([A-Z_]+)` \|/gm)].map((match) => match[1]);
    expect(new Set(listed)).toEqual(new Set(variables.keyof().options));
  });
});
