import { chmodSync, mkdtempSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const memory = '/dev/shm';
const memoryBytesMin = 3 * 2 ** 30;

/** A new directory in memory; `null` where the system has no such place, or not enough of it. */
function directoryInMemory() {
  try {
    const { bavail, bsize } = statfsSync(memory);
    return bavail * bsize < memoryBytesMin ? null : mkdtempSync(join(memory, 'latchkey-test-'));
  } catch {
    return null;
  }
}

/**
 * Makes a directory for what tests write and has it be the temporary directory of this process and of those that it
 * starts; removed when this process ends. In memory where there is room: tests sync at each of many thousand commits.
 */
export function useTestDirectory() {
  const directory = directoryInMemory() ?? mkdtempSync(join(tmpdir(), 'latchkey-test-'));
  // PostgreSQL runs as another user, and has to reach what is its own in there.
  chmodSync(directory, 0o711);
  process.env['TMPDIR'] = directory;
  process.once('exit', () => rmSync(directory, { recursive: true, force: true }));
}
