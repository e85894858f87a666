import { open } from 'node:fs/promises';
import { CommandError } from './failures.ts';

/**
 * Writes lines into a new file that is its owner's alone, and has them on the disk when it returns. Throws CommandError for
 * a file that is there already.
 * @returns how many lines there were
 */
export async function writeNewFile(file: string, rows: AsyncIterable<readonly string[]>): Promise<number> {
  const out = await open(file, 'wx', 0o600).catch((error: unknown) => {
    throw new CommandError('failed', `The file ${file} cannot be created, or exists already`, { cause: error });
  });
  try {
    let written = 0;
    for await (const lines of rows) {
      await out.write(lines.join(''));
      written += lines.length;
    }
    await out.sync();
    return written;
  } finally {
    await out.close();
  }
}
