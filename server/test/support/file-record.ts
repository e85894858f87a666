import { existsSync, readFileSync } from 'node:fs';
import { relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DefaultQueryExecutor, type RootOperationNode, SqliteQueryCompiler } from 'kysely';
import { afterAll } from 'vitest';

declare module 'vitest' {
  interface TaskMeta {
    /** CPU time and statements of a test file; on the file alone. */
    record?: {
      /** Milliseconds of CPU, of this process and of those that it started and that have ended (where the system tells). */
      readonly cpuMs: number;
      /**
       * The statements of the product that were built: `<file> <function>: <kind> <tables>`, and of each the parts that
       * engines may understand differently, after a ` | `.
       */
      readonly statements: readonly string[];
    };
  }
}

const root = resolve(import.meta.dirname, '../../..');
/** Functions that run the statements of others, and so are never their origin. */
const carriers = [
  'database.ts',
  'statement.ts',
  'batches.ts',
  'commit-versioned-cache.ts',
  'write-health.ts',
  'sqlite/sqlite.ts',
  'sqlite/stream-reader.ts',
  'postgres/',
].map((name) => `server/src/db/${name}`);
for (const path of carriers) if (!existsSync(resolve(root, path))) throw new Error(`no carrier of statements: ${path}`);

interface Recording {
  statements: Set<string>;
  /** Origins and texts whose shapes are in `statements` already. */
  known: Set<string>;
}

/** Shared by all test files of this process, as the compiler of queries is. */
const shared = globalThis as { statementRecording?: Recording };

const ownFile = 'server/test/support/file-record.ts';
const paths = new Map<string, string | null>();

/** Path of a file from the root; `null` for what is no file of this project, and for what only carries statements. */
function pathOf(name: string): string | null {
  if (name === '' || name.startsWith('node:')) return null;
  const path = relative(root, name.startsWith('file:') ? fileURLToPath(name) : name).replaceAll(sep, '/');
  const isForeign = path.startsWith('..') || path.includes('node_modules/') || path === '';
  return isForeign || path === ownFile || carriers.some((carrier) => path.startsWith(carrier)) ? null : path;
}

/** The same from memory: this is asked for each frame of each statement. */
function knownPathOf(name: string): string | null {
  let path = paths.get(name);
  if (path === undefined) {
    path = pathOf(name);
    paths.set(name, path);
  }
  return path;
}

function framesHere(limit: number): NodeJS.CallSite[] {
  const { prepareStackTrace, stackTraceLimit } = Error;
  try {
    Error.stackTraceLimit = limit;
    Error.prepareStackTrace = (_, frames) => frames;
    return new Error('where').stack as unknown as NodeJS.CallSite[];
  } finally {
    Error.prepareStackTrace = prepareStackTrace;
    Error.stackTraceLimit = stackTraceLimit;
  }
}

/** Frames that nearly every statement is found within, and those that are enough for each. */
const frameLimits = [14, 40];

/** The file and function of the product that a statement comes from; `null` where a test made it. */
function origin(): string | null {
  for (const limit of frameLimits) {
    for (const frame of framesHere(limit)) {
      const file = knownPathOf(frame.getFileName() ?? '');
      if (file === null) continue;
      if (file.endsWith('.test.ts') || /^(?:server|cli)\/test\//.test(file)) return null;
      return `${file} ${frame.getFunctionName() ?? ''}`.trimEnd();
    }
  }
  return null;
}

/** Separators of the parts of a statement. */
const separators =
  /\b(?:select|from|(?:inner |left )?join|on|where|and|or|order by|group by|having|limit|offset|set|values|returning|union)\b|, /;
/** A part that every engine reads alike: names, parameters, equality, membership of a list. */
const plain = /^(?:(?:"\w+"\.)?"\w+"|\*|\?|as|is null|is not null|=|in|not|exists|asc|\(|\)|\s)*$/;

/** Kind and tables of a statement, and its parts that are not plain; the same on every store and with every list. */
function shapeOf(sql: string): readonly string[] {
  const tables = new Set(Array.from(sql.matchAll(/\b(?:from|join|into|update) "(\w+)"/g), ([, table]) => table));
  const kind = [/^\W*(\w+)/.exec(sql)?.[1] ?? '', ...tables].join(' ');
  const parts = sql.split(separators).map((part) => part.trim());
  return [kind, ...parts.filter((part) => !plain.test(part)).map((part) => `${kind} | ${part}`)];
}

/** One compiler for both stores: the dialects' own differences would hide those of the statements. */
const compiler = new SqliteQueryCompiler();

function note(recording: Recording, from: string, sql: string): void {
  const key = `${from}\n${sql}`;
  if (recording.known.has(key)) return;
  recording.known.add(key);
  for (const shape of shapeOf(sql)) recording.statements.add(`${from}: ${shape}`);
}

function startRecording(): Recording {
  const recording: Recording = { statements: new Set(), known: new Set() };
  const executor: Pick<DefaultQueryExecutor, 'transformQuery'> = Object.getPrototypeOf(DefaultQueryExecutor.prototype);
  const { transformQuery } = executor;
  executor.transformQuery = function <T extends RootOperationNode>(
    this: DefaultQueryExecutor,
    ...args: [T, { readonly queryId: string }]
  ) {
    const from = origin();
    if (from !== null) note(recording, from, compiler.compileQuery(...args).sql);
    return transformQuery.apply(this, args) as T;
  };
  return recording;
}

const ticksASecond = 100;

/** Milliseconds of CPU of the processes that this one started and that have ended: `cutime` and `cstime` of proc(5). */
function childrenCpuMs(): number {
  try {
    const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]?.split(' ') ?? [];
    return ((Number(fields[13]) + Number(fields[14])) * 1_000) / ticksASecond;
  } catch {
    return 0;
  }
}

function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000 + childrenCpuMs();
}

shared.statementRecording ??= startRecording();
const recording = shared.statementRecording;
recording.statements = new Set();
recording.known = new Set();
const cpuMsBefore = cpuMs();

// biome-ignore lint/correctness/noEmptyPattern: Vitest takes nothing else for a context that is not used
afterAll(({} /* oxlint-disable-line no-empty-pattern -- as above */, { file }) => {
  file.meta.record = { cpuMs: Math.round(cpuMs() - cpuMsBefore), statements: [...recording.statements] };
});
