import { readFileSync } from 'node:fs';

/** Seconds for which a process's event loop was ready to run and had no core, or null where the kernel doesn't tell. */
export function waitSecondsOf(pid: number): number | null {
  try {
    return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, 'utf8').split(' ')[1]) / 1e9;
  } catch {
    return null;
  }
}
