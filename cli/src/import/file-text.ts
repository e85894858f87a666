import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { CommandError } from '../failures.ts';

/** Tells how much of a file is read, in kibibytes. */
export type Progress = (done: number, total: number) => void;

const kibibyte = 1_024;

/** The size of a file in bytes; ends the command where there is none that can be read. */
export async function sizeOf(file: string): Promise<number> {
  const found = await stat(file).catch(() => null);
  if (found?.isFile()) return found.size;
  throw new CommandError('failed', `The file ${file} cannot be read`);
}

/** Why a file cannot be read; what its reader throws is its own. */
function readingError(file: string, error: unknown): unknown {
  const code = error instanceof Error && 'code' in error ? error.code : null;
  const isBytes = code === 'ERR_ENCODING_INVALID_ENCODED_DATA';
  if (!isBytes && !(error instanceof Error && 'syscall' in error)) return error;
  const what = isBytes ? 'is not UTF-8' : 'cannot be read';
  return new CommandError('failed', `The file ${file} ${what}`, { cause: error });
}

/**
 * Reads the text of a file, piece by piece, without a byte order mark. Ends the command for a file that is not UTF-8.
 */
export async function* fileText(file: string, progress: Progress): AsyncGenerator<string> {
  const total = Math.max(1, Math.ceil((await sizeOf(file)) / kibibyte));
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let bytes = 0;
  try {
    const chunks: AsyncIterable<Buffer> = createReadStream(file);
    for await (const chunk of chunks) {
      bytes += chunk.length;
      progress(Math.min(total - 1, Math.floor(bytes / kibibyte)), total);
      yield decoder.decode(chunk, { stream: true });
    }
    yield decoder.decode();
    progress(total, total);
  } catch (error) {
    throw readingError(file, error);
  }
}

/** The lines of a file that are not empty, with their numbers. */
export async function* fileLines(file: string, progress: Progress): AsyncGenerator<readonly [number, string]> {
  let number = 0;
  let rest = '';
  for await (const piece of fileText(file, progress)) {
    const lines = (rest + piece).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      number += 1;
      if (line.trim() !== '') yield [number, line];
    }
  }
  if (rest.trim() !== '') yield [number + 1, rest];
}
