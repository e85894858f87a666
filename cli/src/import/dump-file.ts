import { open } from 'node:fs/promises';
import { CommandError } from '../failures.ts';
import { fileLines, fileText, type Progress, sizeOf } from './file-text.ts';

/** One document of a dump, or why what stands at a place is none. */
export interface DumpItem {
  readonly place: string;
  /** As the dump has it. */
  readonly collection: string;
  readonly document: unknown;
}

/** A whole document is held in memory while it is read; JSON Lines of any length are not. */
const wholeBytesMax = 64 * 1_048_576;
const headBytes = 65_536;

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** An object of JSON; `null` for anything else. */
export function asObject(value: unknown): Readonly<Record<string, unknown>> | null {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return null;
  return Object.fromEntries(Object.entries(value));
}

/** Returns whether the first line is a document with its collection; an empty file counts as one without documents. */
async function isLines(file: string): Promise<boolean> {
  const handle = await open(file);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(headBytes), 0, headBytes, 0);
    const [first = ''] = buffer
      .toString('utf8', 0, bytesRead)
      .replace(/^\ufeff/, '')
      .trimStart()
      .split('\n');
    return first === '' || typeof asObject(parsed(first))?.['collection'] === 'string';
  } finally {
    await handle.close();
  }
}

async function* linesOf(file: string, progress: Progress): AsyncGenerator<DumpItem> {
  for await (const [number, text] of fileLines(file, progress)) {
    const line = asObject(parsed(text));
    const collection = line?.['collection'];
    const isRead = typeof collection === 'string';
    yield {
      place: `line ${number}`,
      collection: isRead ? collection : '',
      document: isRead ? line?.['document'] : null,
    };
  }
}

async function* documentsOf(file: string, progress: Progress): AsyncGenerator<DumpItem> {
  if ((await sizeOf(file)) > wholeBytesMax) {
    throw new CommandError(
      'failed',
      `The file ${file} is longer than 64 MB and not in JSON Lines: write it with one document a line`,
    );
  }
  let text = '';
  for await (const piece of fileText(file, progress)) text += piece;
  const dump = asObject(parsed(text));
  if (!dump) throw new CommandError('failed', `The file ${file} is neither a JSON object nor JSON Lines of documents`);
  for (const [collection, documents] of Object.entries(dump)) {
    if (!Array.isArray(documents)) {
      yield { place: collection, collection, document: documents };
      continue;
    }
    for (const [number, document] of documents.entries()) {
      yield { place: `${collection}[${number}]`, collection, document };
    }
  }
}

/**
 * The documents of a dump: one JSON object with an array for each collection, or JSON Lines of
 * `{ "collection", "document" }`. Ends the command for anything else. Rule: CLI-17.
 */
export async function* readDump(file: string, progress: Progress): AsyncGenerator<DumpItem> {
  await sizeOf(file);
  yield* (await isLines(file)) ? linesOf(file, progress) : documentsOf(file, progress);
}
