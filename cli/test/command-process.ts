import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import type { Json } from '../../server/test/test-app.ts';

/** The root of the checkout. */
export const root = resolve(import.meta.dirname, '../..');
const program = join(root, 'dist/bin/latchkey.js');

/** How a command ended, and all that it said. */
export interface CommandEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
}

interface Surroundings {
  readonly environment?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** What is run in place of the compiled program. */
  readonly file?: string;
}

/** Runs the built command as a process of its own, without a terminal, with nothing of this process's environment. */
export async function latchkey(args: readonly string[], surroundings: Surroundings = {}): Promise<CommandEnd> {
  const { environment = {}, cwd = tmpdir(), file } = surroundings;
  const [command, before] = file === undefined ? [process.execPath, [program]] : [file, []];
  const child = spawn(command, [...before, ...args], {
    cwd,
    env: { PATH: process.env['PATH'] ?? '', ...environment },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'close')]);
  return { code: child.exitCode, signal: child.signalCode, stdout, stderr };
}

/** Runs a command with `--json` that is expected to succeed; answers what it printed. */
export async function latchkeyJson(...args: string[]): Promise<Json> {
  const { code, stdout, stderr } = await latchkey([...args, '--json']);
  if (code !== 0 || stderr !== '') throw new Error(`latchkey ${args.join(' ')} ended with ${code}: ${stderr}`);
  if (!/^\{.*\}\n$/.test(stdout)) throw new Error(`not one line of JSON: ${stdout}`);
  return JSON.parse(stdout);
}
