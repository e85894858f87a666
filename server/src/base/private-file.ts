import { randomUUID } from 'node:crypto';
import { closeSync, fsyncSync, openSync, readFileSync, renameSync, statSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { StartupError } from './errors.ts';

/** Writes a file that is its owner's alone, whole or not at all, so that it survives a power cut. */
export function writePrivately(file: string, content: string): void {
  const unfinished = `${file}.${randomUUID()}`;
  const handle = openSync(unfinished, 'wx', 0o600);
  writeSync(handle, content);
  fsyncSync(handle);
  closeSync(handle);
  renameSync(unfinished, file);
  syncDirectory(file);
}

/** Has the names of files survive a power cut, too: those in the directory of `file`. */
export function syncDirectory(file: string): void {
  const directory = openSync(dirname(file), 'r');
  fsyncSync(directory);
  closeSync(directory);
}

/** The content of a key file. Throws StartupError for one that others can read, or that cannot be read at all. */
export function readPrivately(file: string): string {
  if ((statSync(file).mode & 0o077) !== 0) {
    throw new StartupError(
      `The key file ${file} can be read by others: run chmod 600 on it, or replace it if it leaked`,
    );
  }
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    throw new StartupError(`The key file ${file} cannot be read (${code})`);
  }
}
