import { createHash, type Hash } from 'node:crypto';
import { closeSync, fstatSync, fsyncSync, openSync, readSync, writeSync } from 'node:fs';
import { StartupError } from '../../base/errors.ts';
import type { Progress } from './store-copy.ts';

const chunkBytes = 1_048_576;
const mark = '\nlatchkey-backup-1 sha256 ';
const hashLength = 64;
const checksumLength = mark.length + hashLength + 1;

/** The parts of what stands in an open file before `end`, in order. */
function* partsOf(fd: number, end: number): Generator<Buffer> {
  const chunk = Buffer.alloc(chunkBytes);
  for (let at = 0; at < end; ) {
    const length = readSync(fd, chunk, 0, Math.min(chunkBytes, end - at), at);
    if (length === 0) return;
    at += length;
    yield chunk.subarray(0, length);
  }
}

function checksumOf(hash: Hash): string {
  return `${mark}${hash.digest('hex')}\n`;
}

/** Writes at the end of a file what proves that it is whole, and makes sure that all of it is on the disk. */
export function appendChecksum(file: string): void {
  const fd = openSync(file, 'r+');
  try {
    const { size } = fstatSync(fd);
    const hash = createHash('sha256');
    for (const part of partsOf(fd, size)) hash.update(part);
    writeSync(fd, checksumOf(hash), size);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function readAt(fd: number, at: number, length: number): string {
  const text = Buffer.alloc(length);
  readSync(fd, text, 0, length, at);
  return text.toString('latin1');
}

/** Hands every part before the seal of an open file on, and then looks at the seal. */
function readVerified(from: string, fd: number, take: (part: Buffer, at: number, end: number) => void): void {
  const end = fstatSync(fd).size - checksumLength;
  const found = end < 0 ? '' : readAt(fd, end, checksumLength);
  if (!found.startsWith(mark)) {
    const isStore = end >= 0 && readAt(fd, 0, 15) === 'SQLite format 3';
    throw new StartupError(
      isStore
        ? `${from} is a store without the checksum of a back-up: it is incomplete, or was not created by latchkey backup`
        : `${from} is no back-up of Latchkey`,
    );
  }
  const hash = createHash('sha256');
  let at = 0;
  for (const part of partsOf(fd, end)) {
    hash.update(part);
    take(part, at, end);
    at += part.length;
  }
  if (checksumOf(hash) !== found) throw new StartupError(`${from} is damaged: its checksum does not match`);
}

function openToRead(file: string): number {
  try {
    return openSync(file, 'r');
  } catch (error) {
    throw new StartupError(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/**
 * Reads a file with a checksum again from its beginning to its end. Throws StartupError unless the checksum matches.
 */
export function verifyChecksum(file: string): void {
  const fd = openToRead(file);
  try {
    readVerified(file, fd, () => {});
  } finally {
    closeSync(fd);
  }
}

/** Copies a file with a checksum, without the checksum, into a new file. Throws StartupError unless it matches. */
export function copyVerified(from: string, to: string, progress: Progress): void {
  const fd = openToRead(from);
  try {
    const out = openSync(to, 'wx', 0o600);
    try {
      readVerified(from, fd, (part, at, end) => {
        writeSync(out, part, 0, part.length, at);
        progress(at + part.length, end);
      });
    } finally {
      closeSync(out);
    }
  } finally {
    closeSync(fd);
  }
}
