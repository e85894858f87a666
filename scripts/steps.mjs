import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The root of the checkout. Every tool runs there, wherever the command was started. */
export const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** A failure that the reader can act on: its message says what is wrong and what to do; its stack says nothing more. */
export class StepError extends Error {}

/** @type {number | null} */
let signalExitCode = null;

/** Returns whether a signal is ending this process: what fails now was interrupted. */
export const isStopping = () => signalExitCode !== null;

/**
 * Ends the process with one line for a `StepError`, and with the whole stack for any unexpected error; without a word where
 * a signal ends it.
 */
export function exitWith(/** @type {unknown} */ error) {
  if (signalExitCode !== null) process.exit(signalExitCode);
  process.stderr.write(`${error instanceof StepError ? error.message : stackOf(error)}\n`);
  process.exit(1);
}

/** The whole stack of an error. */
export const stackOf = (/** @type {unknown} */ error) => (error instanceof Error ? error.stack : String(error));

/** The code of an error of the system, such as ENOENT; undefined for any other. */
export const codeOf = (/** @type {unknown} */ error) =>
  error instanceof Error && 'code' in error ? String(error.code) : undefined;

/** Sorts texts, the same on every machine. */
export const byName = (/** @type {string} */ a, /** @type {string} */ b) => (a < b ? -1 : Number(a > b));

/** Prints progress to the standard error, so that the standard output contains results only. */
export function say(/** @type {string} */ text) {
  process.stderr.write(text);
}

/** Processor time of the programs that ran to their end here, in milliseconds; null where the system does not say. */
export function childrenCpuMs() {
  try {
    const [, fields = ''] = readFileSync('/proc/self/stat', 'utf8').split(') ');
    const [user, system] = fields.split(' ').slice(13, 15).map(Number);
    // In hundredths of a second, as Linux has them on every architecture.
    return (Number(user) + Number(system)) * 10;
  } catch {
    return null;
  }
}

/** Whole seconds from ten on, tenths below. */
export function inSeconds(/** @type {number} */ ms) {
  return `${(ms / 1_000).toFixed(ms < 10_000 ? 1 : 0)} s`;
}

/** @type {Set<import('node:child_process').ChildProcess>} */
const children = new Set();
const graceMs = 5_000;

/** @type {readonly (readonly [NodeJS.Signals, number])[]} */
const signals = [
  ['SIGHUP', 1],
  ['SIGINT', 2],
  ['SIGTERM', 15],
];
const handlers = signals.map(([signal, number]) => ({ signal, handle: () => void stopChildren(128 + number) }));

/** Signals are caught only while a child runs: afterwards they belong to the server in this same process. */
function track(/** @type {import('node:child_process').ChildProcess} */ child) {
  if (children.size === 0) for (const { signal, handle } of handlers) process.on(signal, handle);
  children.add(child);
}

function untrack(/** @type {import('node:child_process').ChildProcess} */ child) {
  children.delete(child);
  if (children.size === 0) for (const { signal, handle } of handlers) process.off(signal, handle);
}

/** Ends once every child is gone, so that nothing works on behind a lock that is free. npm is deaf to a mere SIGTERM. */
async function stopChildren(/** @type {number} */ exitCode) {
  signalExitCode = exitCode;
  const closed = [...children].map((child) => once(child, 'close'));
  signalChildren('SIGTERM');
  setTimeout(() => signalChildren('SIGKILL'), graceMs);
  await Promise.allSettled(closed);
  process.exit(exitCode);
}

/** Each child leads a process group: the signal reaches what it started, too. */
function signalChildren(/** @type {NodeJS.Signals} */ signal) {
  for (const { pid } of children) {
    try {
      if (pid !== undefined) process.kill(-pid, signal);
    } catch (error) {
      if (codeOf(error) !== 'ESRCH') throw error;
    }
  }
}

/** @typedef {{ code: number, output: string, ms: number }} Ran how a program ended */

/**
 * Runs a program without a shell and without standard input, in the root. Answers its exit code (1 when a signal ended
 * it), what it printed (empty when `stdio` hands its output on) and how long it took. Rejects when it cannot be started.
 * @returns {Promise<Ran>}
 */
export function run(
  /** @type {string} */ command,
  /** @type {readonly string[]} */ args,
  /** @type {import('node:child_process').SpawnOptions} */ options = {},
) {
  const startedMs = performance.now();
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, detached: true, stdio: ['ignore', 'pipe', 'pipe'], ...options });
    track(child);
    let output = '';
    // There are no streams when `stdio` hands the output on.
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text) => {
        output += text;
      });
    }
    child.on('error', (error) => {
      untrack(child);
      reject(error);
    });
    child.on('close', (code) => {
      untrack(child);
      resolve({ code: code ?? 1, output, ms: performance.now() - startedMs });
    });
  });
}

/** Runs a script or a package's program with the Node.js that runs this one. */
export function runNode(
  /** @type {readonly string[]} */ args,
  /** @type {import('node:child_process').SpawnOptions} */ options = {},
) {
  return run(process.execPath, args, options);
}
