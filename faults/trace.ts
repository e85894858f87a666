import { closeSync, openSync, readSync } from 'node:fs';

/** The system calls by which a file comes to be what it is. */
export const tracedCalls = [
  ...[
    'open',
    'openat',
    'creat',
    'write',
    'writev',
    'pwrite64',
    'pwritev',
    'lseek',
    'ftruncate',
    'truncate',
    'fallocate',
  ],
  ...[
    'fsync',
    'fdatasync',
    'sync_file_range',
    'rename',
    'renameat',
    'renameat2',
    'unlink',
    'unlinkat',
    'link',
    'linkat',
  ],
];

/** What strace wrote, line by line, without the whole of it in memory. */
function* linesOf(file) {
  const handle = openSync(file, 'r');
  const chunk = Buffer.alloc(1 << 20);
  let rest = '';
  try {
    for (let read = readSync(handle, chunk); read > 0; read = readSync(handle, chunk)) {
      const lines = (rest + chunk.toString('latin1', 0, read)).split('\n');
      rest = lines.pop();
      yield* lines;
    }
  } finally {
    closeSync(handle);
  }
}

const bytesOf = (hex) => Buffer.from(hex.replaceAll('\\x', ''), 'hex');
const textOf = (hex) => bytesOf(hex).toString();

/** Arguments, split at the commas between them: strings are all hexadecimal, and paths of handles stand in <>. */
function split(text) {
  return text
    .match(/"[^"]*"(?:\.\.\.)?|<[^>]*>|\[[^\]]*\]|\{[^}]*\}|[^,"<[{]+(?:<[^>]*>)?(?:\([^)]*\))?|,/g)
    .join('')
    .split(/,\s(?![^[]*\])/);
}

/** The path of a handle, such as `21</data/x>`; null for what is no file, or has none any more. */
function pathOf(handle) {
  const [, path, isGone] = /^-?\w+<(.*?)>(\(deleted\))?$/.exec(handle) ?? [];
  if (path === undefined || isGone !== undefined) return null;
  const plain = path.includes('\\x') ? textOf(path) : path;
  return plain.endsWith(' (deleted)') ? null : plain;
}

function toOperation(name, args, result) {
  switch (name) {
    case 'openat':
      return { kind: 'open', path: textOf(args[1].slice(1, -1)), flags: args[2], handle: result };
    case 'open':
      return { kind: 'open', path: textOf(args[0].slice(1, -1)), flags: args[1], handle: result };
    case 'write':
      return {
        kind: 'write',
        path: pathOf(args[0]),
        handle: args[0],
        data: bytesOf(args[1].slice(1, -1)),
        length: Number(result),
      };
    case 'pwrite64':
      return {
        kind: 'write',
        path: pathOf(args[0]),
        at: Number(args[3]),
        data: bytesOf(args[1].slice(1, -1)),
        length: Number(result),
      };
    case 'ftruncate':
      return { kind: 'truncate', path: pathOf(args[0]), size: Number(args[1]) };
    case 'fsync':
    case 'fdatasync':
      return { kind: 'sync', path: pathOf(args[0]) };
    case 'rename':
      return { kind: 'rename', path: textOf(args[0].slice(1, -1)), to: textOf(args[1].slice(1, -1)) };
    case 'renameat':
    case 'renameat2':
      return { kind: 'rename', path: textOf(args[1].slice(1, -1)), to: textOf(args[3].slice(1, -1)) };
    case 'unlink':
      return { kind: 'unlink', path: textOf(args[0].slice(1, -1)) };
    case 'unlinkat':
      return { kind: 'unlink', path: textOf(args[1].slice(1, -1)) };
    case 'lseek':
      return null;
    default:
      return { kind: name, path: pathOf(args[0]) };
  }
}

/**
 * Reads what strace recorded (`-f -ttt -y -xx`) and answers the operations on files below a directory in their order, each
 * with `atMs`, when it began, in milliseconds since 1970. Throws for what it does not know how to do again.
 */
export function readOperations(file, directory) {
  const operations = [];
  const unfinished = new Map();
  for (const line of linesOf(file)) {
    const [, thread, time, rest] = /^(\d+)\s+(\d+\.\d+) (.*)$/.exec(line) ?? [];
    if (rest === undefined) continue;
    let [call, atMs] = [rest, Number(time) * 1_000];
    if (rest.endsWith('<unfinished ...>')) {
      unfinished.set(thread, { call: rest.slice(0, -'<unfinished ...>'.length), atMs });
      continue;
    }
    const [, resumed] = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest) ?? [];
    if (resumed !== undefined) {
      const begun = unfinished.get(thread);
      unfinished.delete(thread);
      if (!begun) continue;
      [call, atMs] = [begun.call + resumed, begun.atMs];
    }
    const [, name, args, result] = /^(\w+)\((.*)\)\s+= (\S+)/.exec(call) ?? [];
    if (name === undefined || result.startsWith('-1')) continue;
    const operation = toOperation(name, split(args), result);
    if (!operation?.path?.startsWith(`${directory}`)) continue;
    if (!['open', 'write', 'truncate', 'sync', 'rename', 'unlink'].includes(operation.kind)) {
      throw new Error(`nobody knows how to do ${operation.kind} again`);
    }
    operations.push({ ...operation, atMs, thread });
  }
  return operations;
}
