import { spawn, spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';

/** What Node.js needs to run a file of TypeScript. */
const withTypes = ['--import', new URL('../scripts/typescript.mjs', import.meta.url).href];
const stopGraceMs = 12_000;
const running = new Set();
const folders = new Set();

function allowedCores() {
  const list = /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '';
  return list.split(',').flatMap((range) => {
    const [first, last = first] = range.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, offset) => first + offset);
  });
}

function chooseCores() {
  if (availableParallelism() < 2 || spawnSync('taskset', ['--version']).status !== 0) return null;
  const [server, generator, ...further] = allowedCores();
  const others = further.length > 0 ? [server, ...further] : [server, generator];
  return { server, generator, others: others.join() };
}

/**
 * The core for whichever server is measured and the one for the generator; null where processes can't be pinned. `others`
 * are all cores but the generator's, which is among them where there are only two.
 */
export const cores = chooseCores();

/** A new folder below the system's temporary one, removed by `endEverything`. */
export function temporaryFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'latchkey-bench-'));
  folders.add(folder);
  return folder;
}

/**
 * Starts `node` with these arguments on a core (`'server'` or `'generator'`) or on cores (`'others'`). The environment is
 * `env` and nothing of the caller's but PATH and HOME. Standard output goes to `logFile` when given, otherwise to a pipe.
 */
export function startNode(args, { core, env, cwd, logFile }) {
  const pin = cores === null ? [] : ['taskset', '-c', String(cores[core])];
  const [command, ...rest] = [...pin, process.execPath, ...(args[0].endsWith('.ts') ? withTypes : []), ...args];
  const log = logFile === undefined ? null : openSync(logFile, 'a');
  const child = spawn(command, rest, {
    cwd,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
    stdio: log === null ? ['ignore', 'pipe', 'pipe'] : ['ignore', log, log],
  });
  if (log !== null) closeSync(log);
  running.add(child);
  child.ended = new Promise((resolve) => {
    child.once('error', (error) => resolve({ error }));
    child.once('close', (code, signal) => resolve({ code, signal }));
  }).finally(() => running.delete(child));
  return child;
}

/** Runs `node` to its end and returns what it printed; throws with its last words on stderr when it fails. */
export async function runNode(args, options) {
  const child = startNode(args, options);
  const [output, complaint] = [collect(child.stdout), collect(child.stderr)];
  const { code, error } = await child.ended;
  if (code === 0) return output();
  throw new Error(complaint().trim() || error?.message || `node ${args[0]} ended with ${code}`);
}

/** Gathers a stream; the function it returns gives what has come so far. */
export function collect(stream) {
  const chunks = [];
  stream.on('data', (chunk) => chunks.push(chunk));
  return () => Buffer.concat(chunks).toString('utf8');
}

/** Ends a process that was started here, in order if it can; what it is asked of twice is done once. */
export async function end(child) {
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), stopGraceMs);
  await child.ended;
  clearTimeout(timer);
}

/** Ends every process that was started here and is still running, then removes the temporary folders. */
export async function endEverything() {
  while (running.size > 0) await Promise.all([...running].map(end));
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  folders.clear();
}
