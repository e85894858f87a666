import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { start } from '../harness/processes.ts';

/** The program that records calls of the kernel, or has them fail, and its Debian package. */
export const tracer = { command: 'strace', package: 'strace' };

const attachMsMax = 5_000;

/** Whether all threads of a process are traced; one that has ended is no matter. */
function isTraced(pid: number): boolean {
  if (!existsSync(`/proc/${pid}/task`)) return true;
  return readdirSync(`/proc/${pid}/task`).every((thread) => {
    const status = readFileSync(`/proc/${pid}/task/${thread}/status`, 'utf8');
    return !/^TracerPid:\s+0$/m.test(status);
  });
}

/** How calls of the kernel fail. */
export interface Injection {
  /** Such as `fsync,fdatasync`. */
  readonly calls: string;
  /** Such as EIO. */
  readonly error: string;
  /** Fails one of so many in each process. */
  readonly every: number;
  /** On these alone, if any are named. */
  readonly files?: readonly string[];
}

/**
 * Has calls of the kernel fail in running processes and in what they start; returns what ends that.
 */
export async function inject(pids: readonly number[], injection: Injection): Promise<() => Promise<void>> {
  const { calls, error, every, files = [] } = injection;
  const when = every === 1 ? '' : `:when=${every}+${every}`;
  const only = files.flatMap((file) => ['-P', file]);
  const args = [
    '-f',
    '-qq',
    '-o',
    '/dev/null',
    ...only,
    '-e',
    `trace=${calls}`,
    '-e',
    `inject=${calls}:error=${error}${when}`,
  ];
  const strace = start('strace', [...args, ...pids.flatMap((pid) => ['-p', String(pid)])]);
  const untilMs = performance.now() + attachMsMax;
  while (!pids.every(isTraced)) {
    if (performance.now() > untilMs) throw new Error(`strace does not trace: ${strace.said()}`);
    await sleep(20);
  }
  return async () => {
    await strace.end('SIGINT');
  };
}
