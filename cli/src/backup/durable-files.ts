import { closeSync, copyFileSync, fsyncSync, linkSync, openSync } from 'node:fs';

/** Makes sure that a file, or the names in a directory, survive a power cut. */
export function sync(path: string): void {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Gives a file a second name in another directory; where the file system has no such thing, a copy. */
export function keepAlso(file: string, to: string): void {
  try {
    linkSync(file, to);
  } catch {
    copyFileSync(file, to);
    sync(to);
  }
}
