import { closeSync, openSync, readSync } from 'node:fs';

/** The system calls by which a file comes to be what it is. */
export const tracedCalls = [
  'open,openat,creat,write,writev,pwrite64,pwritev,lseek,ftruncate,truncate,fallocate',
  'fsync,fdatasync,sync_file_range,rename,renameat,renameat2,unlink,unlinkat,link,linkat',
].join(',');

/** What is done to a file. */
type Deed =
  | { readonly kind: 'open'; readonly path: string; readonly flags: string; readonly handle: string }
  | {
      readonly kind: 'write';
      readonly path: string;
      readonly handle: string;
      /** Where; without it, where the handle stands. */
      readonly at?: number;
      readonly data: Buffer;
      readonly length: number;
    }
  | { readonly kind: 'truncate'; readonly path: string; readonly size: number }
  | { readonly kind: 'sync' | 'unlink'; readonly path: string }
  | { readonly kind: 'rename'; readonly path: string; readonly to: string };

/** What cannot be done again. */
interface Unknown {
  readonly kind: 'unknown';
  readonly path: string;
  readonly name: string;
}

interface TracedCall {
  readonly name: string;
  readonly args: readonly string[];
  readonly result: string;
}

/** The same, with when it began, in milliseconds since 1970. */
export type Operation = Deed & { readonly atMs: number };

/** What strace wrote, line by line, without the whole of it in memory. */
function* linesOf(file: string): Generator<string> {
  const handle = openSync(file, 'r');
  const chunk = Buffer.alloc(1 << 20);
  let rest = '';
  try {
    for (let read = readSync(handle, chunk); read > 0; read = readSync(handle, chunk)) {
      const lines = (rest + chunk.toString('latin1', 0, read)).split('\n');
      rest = lines.pop() ?? '';
      yield* lines;
    }
  } finally {
    closeSync(handle);
  }
}

const bytesOf = (hex: string) => Buffer.from(hex.replaceAll('\\x', ''), 'hex');
const textOf = (hex: string) => bytesOf(hex).toString();

/** Arguments, split at the commas between them: strings are all hexadecimal, and paths of handles stand in <>. */
function split(text: string): readonly string[] {
  const parts = text.match(/"[^"]*"(?:\.\.\.)?|<[^>]*>|\[[^\]]*\]|\{[^}]*\}|[^,"<[{]+(?:<[^>]*>)?(?:\([^)]*\))?|,/g);
  return (parts ?? []).join('').split(/,\s(?![^[]*\])/);
}

/** The path of a handle, such as `21</data/x>`; null for what is no file, or has none any more. */
function pathOf(handle: string): string | null {
  const [, path, isGone] = /^-?\w+<(.*?)>(\(deleted\))?$/.exec(handle) ?? [];
  if (path === undefined || isGone !== undefined) return null;
  const plain = path.includes('\\x') ? textOf(path) : path;
  return plain.endsWith(' (deleted)') ? null : plain;
}

/** Of a string such as "\\x2f\\x64". */
const quoted = (text: string) => textOf(text.slice(1, -1));

/** What a call did to a file; null for what does nothing to one. */
function deedOf(name: string, args: readonly string[], result: string): Deed | Unknown | null {
  const [first = '', second = '', third = '', fourth = ''] = args;
  if (name === 'openat') return { kind: 'open', path: quoted(second), flags: third, handle: result };
  if (name === 'open') return { kind: 'open', path: quoted(first), flags: second, handle: result };
  if (name === 'rename') return { kind: 'rename', path: quoted(first), to: quoted(second) };
  if (/^renameat2?$/.test(name)) return { kind: 'rename', path: quoted(second), to: quoted(fourth) };
  if (name === 'unlink') return { kind: 'unlink', path: quoted(first) };
  if (name === 'unlinkat') return { kind: 'unlink', path: quoted(second) };
  const path = pathOf(first);
  return path === null || name === 'lseek' ? null : deedOn(path, { name, args, result });
}

function deedOn(path: string, { name, args, result }: TracedCall): Deed | Unknown {
  const [handle = '', text = '', , at] = args;
  const written = () => ({ path, handle, data: bytesOf(text.slice(1, -1)), length: Number(result) });
  switch (name) {
    case 'write':
      return { kind: 'write', ...written() };
    case 'pwrite64':
      return { kind: 'write', ...written(), at: Number(at) };
    case 'ftruncate':
      return { kind: 'truncate', path, size: Number(text) };
    case 'fsync':
    case 'fdatasync':
      return { kind: 'sync', path };
    default:
      return { kind: 'unknown', path, name };
  }
}

/** A call as strace writes it, put together where it was interrupted, with when it began. */
interface RecordedCall {
  readonly call: string;
  readonly atMs: number;
}

/** The whole calls of a record, in the order in which they ended. */
function* callsOf(file: string): Generator<RecordedCall> {
  const unfinished = new Map<string, RecordedCall>();
  for (const line of linesOf(file)) {
    const [, thread = '', time, rest] = /^(\d+)\s+(\d+\.\d+) (.*)$/.exec(line) ?? [];
    if (rest === undefined) continue;
    const [, resumed] = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest) ?? [];
    const begun = unfinished.get(thread);
    if (rest.endsWith('<unfinished ...>')) {
      unfinished.set(thread, { call: rest.slice(0, -'<unfinished ...>'.length), atMs: Number(time) * 1_000 });
    } else if (resumed === undefined) {
      yield { call: rest, atMs: Number(time) * 1_000 };
    } else if (begun) {
      unfinished.delete(thread);
      yield { call: begun.call + resumed, atMs: begun.atMs };
    }
  }
}

/**
 * Reads what strace recorded (`-f -ttt -y -xx`) and returns the operations on files below a directory in their order. Throws
 * for what it does not know how to do again.
 */
export function readOperations(file: string, directory: string): readonly Operation[] {
  const operations: Operation[] = [];
  for (const { call, atMs } of callsOf(file)) {
    const [, name, args = '', result = ''] = /^(\w+)\((.*)\)\s+= (\S+)/.exec(call) ?? [];
    if (name === undefined || result.startsWith('-1')) continue;
    const deed = deedOf(name, split(args), result);
    if (!deed?.path.startsWith(directory)) continue;
    if (deed.kind === 'unknown') throw new Error(`it is not known how to do ${deed.name} again`);
    operations.push({ ...deed, atMs });
  }
  return operations;
}
