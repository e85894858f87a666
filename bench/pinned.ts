import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { collect, type Program, start } from '../harness/processes.ts';

/** What Node.js needs to run a file of TypeScript. */
const withTypes = ['--import', new URL('../scripts/typescript.mjs', import.meta.url).href];

function allowedCores(): readonly number[] {
  const list = /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '';
  return list.split(',').flatMap((range) => {
    const [first = 0, last = first] = range.split('-').map(Number);
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
 * The core for the server that is measured and the one for the generator; null where processes can't be pinned. `others`
 * are all cores but the generator's, which is among them where there are only two.
 */
export const cores = chooseCores();

/** A core or cores of `cores`. */
export type Core = 'server' | 'generator' | 'others';

interface Options {
  readonly core: Core;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** Where its output goes instead of here. */
  readonly logFile?: string;
}

/** The command that keeps a program to a core; empty where that can't be. */
export const pinnedTo = (core: Core): readonly string[] =>
  cores === null ? [] : ['taskset', '-c', String(cores[core])];

/** Starts `node` with these arguments on a core. */
export function startNode(args: readonly string[], { core, ...options }: Options): Program {
  const typed = args[0]?.endsWith('.ts') ? withTypes : [];
  const [command = process.execPath, ...rest] = [...pinnedTo(core), process.execPath, ...typed, ...args];
  return start(command, rest, options);
}

/** Runs `node` to its end and returns what it printed; throws with its last words on the standard error when it fails. */
export async function runNode(args: readonly string[], options: Options): Promise<string> {
  const program = startNode(args, options);
  const [output, complaint] = [collect(program.stdout), collect(program.stderr)];
  const { code, error } = await program.ended;
  if (code === 0) return output();
  throw new Error(complaint().trim() || error?.message || `node ${args[0]} ended with ${code}`);
}
