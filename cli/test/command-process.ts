import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Json } from '../../server/test/support/test-app.ts';
import { runCommandLine } from '../src/command-line.ts';

/** The root of the checkout. */
export const root = resolve(import.meta.dirname, '../..');
const program = join(root, 'dist/bin/latchkey.js');

/** End of a command, with its output. */
export interface CommandEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface ProcessContext {
  readonly environment?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Program to run in place of the compiled one. */
  readonly file?: string;
}

/** Runs the built command as a process of its own, without a terminal, with nothing of this process's environment. */
async function latchkeyProcess(args: readonly string[], context: ProcessContext = {}): Promise<CommandEnd> {
  const { environment = {}, cwd = tmpdir(), file } = context;
  const [command, before] = file === undefined ? [process.execPath, [program]] : [file, []];
  const child = spawn(command, [...before, ...args], {
    cwd,
    env: { PATH: process.env['PATH'] ?? '', METRICS_PORT: '0', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: child.exitCode, signal: child.signalCode, stdout, stderr };
}

/** Commands that go on until a signal ends their process, and the one that leaves what it tried out to the end of its own. */
const ofProcess = ['serve', 'mcp', 'doctor'];

let running = 0;
let mask = 0;

/** Returns whether a command line needs a process: for its duration, its directory, or its defaults. */
function needsProcess(args: readonly string[], { cwd, file, environment = {} }: ProcessContext): boolean {
  const isToldWhere = args.includes('--data-dir') || 'DATA_DIR' in environment;
  return (
    cwd !== undefined ||
    file !== undefined ||
    'NODE_OPTIONS' in environment ||
    !isToldWhere ||
    ofProcess.includes(args[0] ?? '')
  );
}

/** Runs a command line; in this process, which a start takes a hundredth of, unless a process of its own is the matter. */
export async function latchkey(args: readonly string[], given: ProcessContext = {}): Promise<CommandEnd> {
  if (needsProcess(args, given)) return latchkeyProcess(args, given);
  const said = { stdout: '', stderr: '' };
  const stdout = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      said.stdout += chunk.toString();
      done();
    },
  });
  const context = {
    environment: { PATH: process.env['PATH'] ?? '', ...given.environment },
    ask: async () => null,
    askSecret: async () => null,
    stdin: Readable.from([]),
    stdout,
    say: (line: string) => {
      said.stderr += `latchkey: ${line}\n`;
    },
    progress: () => {},
  };
  if (running === 0) mask = process.umask(0o077);
  running += 1;
  try {
    const code = await runCommandLine(args, context, {
      print: (shown) => {
        said.stdout += shown;
      },
      printError: (shown) => {
        said.stderr += shown;
      },
    });
    return { code, signal: null, ...said };
  } finally {
    running -= 1;
    if (running === 0) process.umask(mask);
  }
}

/** Runs a command with `--json` that is expected to succeed; answers what it printed. */
export async function latchkeyJson(...args: string[]): Promise<Json> {
  const { code, stdout, stderr } = await latchkey([...args, '--json']);
  if (code !== 0 || stderr !== '') throw new Error(`latchkey ${args.join(' ')} ended with ${code}: ${stderr}`);
  if (!/^\{.*\}\n$/.test(stdout)) throw new Error(`not one line of JSON: ${stdout}`);
  return JSON.parse(stdout);
}
