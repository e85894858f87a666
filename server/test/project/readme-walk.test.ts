import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { variables } from '../../src/config/config.ts';
import { TestApp } from '../support/test-app.ts';
import { TestClock } from '../support/test-clock.ts';

/** One block that a reader pastes, and what the README says of it. */
interface Step {
  readonly commands: string;
  /** The answer that is shown after the block; empty when none is. */
  readonly shown: string;
  /** The status that the text after the block names. */
  readonly status: number | null;
}

/** Output of a pasted block, and the end of its last command. */
interface Outcome {
  readonly exitCode: number;
  readonly output: string;
  /** Output on the standard error. */
  readonly errors: string;
}

const readme = readFileSync(new URL('../../../README.md', import.meta.url), 'utf8');
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

function readBlocks(printed: string): Omit<Outcome, 'errors'>[] {
  const blocks = printed.matchAll(new RegExp(`([\\s\\S]*?)${mark}(\\d+)\n`, 'g'));
  return [...blocks].map((match) => ({ output: (match[1] ?? '').trim(), exitCode: Number(match[2]) }));
}

/**
 * Runs the printed blocks in one shell. A user pauses between them; here one pause is needed, for the last use of the
 * token to be written before it is listed.
 */
async function paste(steps: readonly Step[], environment: Readonly<Record<string, string>>): Promise<Outcome[]> {
  const home = mkdtempSync(join(tmpdir(), 'latchkey-walk-'));
  const pause = (commands: string) => (commands.includes('/personal-access-tokens/admin') ? 'sleep 1.5\n' : '');
  const script = steps
    .map(({ commands }) => `${pause(commands)}${commands}ended="${mark}$?"; echo "$ended"; echo "$ended" >&2\n`)
    .join('');
  try {
    const shell = spawn('bash', ['-c', script], {
      cwd: home,
      env: { PATH: process.env['PATH'], HOME: home, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const [output, errors, exitCode] = await Promise.all([
      text(shell.stdout),
      text(shell.stderr),
      once(shell, 'close').then(() => shell.exitCode),
    ]);
    expect(exitCode).toBe(0);
    const told = readBlocks(errors);
    return readBlocks(output).map((block, place) => ({ ...block, errors: told[place]?.output ?? '' }));
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
function shapeOfText(response: string): unknown {
  return /^[[{]/.test(response) ? shapeOf(JSON.parse(response)) : response;
}

/** Splits a block's output: the response, and the status below it where curl prints it. */
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

  const response = (place: number) => readOutput(outcomes[place]?.output ?? '');
  const json = (place: number): unknown => JSON.parse(response(place).text);

  it('has eight blocks, each of which ends well (RUN-11)', () => {
    expect(steps).toHaveLength(8);
    expect(outcomes.map(({ exitCode, errors }) => ({ exitCode, errors }))).toEqual(
      steps.map(() => ({ exitCode: 0, errors: '' })),
    );
  });

  it('prints the answers that it shows', () => {
    const printed = steps.map((_, place) => shapeOfText(response(place).text));
    expect(printed).toEqual(steps.map(({ shown }) => shapeOfText(shown)));
  });

  it('names the statuses that it gets', () => {
    const statuses = [null, 200, null, 201, 200, 200, 200, 401];
    expect(steps.map(({ status }) => status)).toEqual(statuses);
    expect(outcomes.map((_, place) => response(place).status)).toEqual(statuses);
  });

  it('makes an organization and signs its administrator in', () => {
    expect(json(1)).toMatchObject({ slug: 'org-1001', onBoardingStatus: 'notConfigured' });
    expect(response(2).text).toBe('Fully authenticated');
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

describe('the walk of the README, with a reader who does not do as it says', () => {
  const [choose, ...others] = readSteps();
  /** The walk up to the token, with another password chosen in the first block. */
  const upToToken = (password: string) => {
    const commands = choose?.commands.replace(/PASSWORD=.*/, () => `PASSWORD='${password}'`) ?? '';
    expect(commands).toContain(`PASSWORD='${password}'\n`);
    return [{ commands, shown: '', status: null }, ...others.slice(0, 3)];
  };
  let app: TestApp;
  beforeEach(async () => {
    app = await TestApp.start({}, new TestClock(Date.now()));
  });
  afterEach(() => app.close());

  it('takes any password', async () => {
    const walked = await paste(upToToken('Aa1"\\n$HOME`id`%s $(id) é€'), { LATCHKEY: app.url });
    expect(walked.map(({ errors }) => errors)).toEqual(['', '', '', '']);
    expect(walked[2]?.output).toBe('Fully authenticated');
    expect(walked[3]?.output).toMatch(/\n201$/);
  });

  it('says what the service says when the password is wrong', async () => {
    await app.setUp();
    const walked = await paste(upToToken('Wrong-Horse-7'), { LATCHKEY: app.url });
    expect(walked.slice(2)).toEqual([
      { exitCode: 1, output: '', errors: 'The credentials are not valid' },
      { exitCode: 1, output: '', errors: 'Send a bearer token in the Authorization header' },
    ]);
  });

  it('says that there is no answer when the service is down', async () => {
    await app.stop();
    const walked = await paste(upToToken('Marble-Kettle-7'), { LATCHKEY: app.url });
    for (const { errors } of walked.slice(2)) {
      expect(errors.split('\n').filter((line) => !line.startsWith('curl: '))).toEqual(['no answer']);
    }
  });
});

describe('the configuration table of the README', () => {
  it('has every variable that the service reads, and no other', () => {
    const listed = [...readme.matchAll(/^\| `([A-Z0-9_]+)` \|/gm)].map((match) => match[1]);
    expect(new Set(listed)).toEqual(new Set(variables.keyof().options));
  });
});
