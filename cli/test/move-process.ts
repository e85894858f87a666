import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { vi } from 'vitest';
import { type CommandEnd, latchkey, root } from './command-process.ts';

/**
 * Loaded into the command's process: notes each statement for PostgreSQL and each file that gets its name, and kills or
 * stops the process before the first that KILL_AT or STOP_AT fits.
 */
const watcher = `
const fs = require('node:fs');
const { createRequire, syncBuiltinESMExports } = require('node:module');
const { Client } = createRequire(process.env.ROOT)('pg');
const append = fs.appendFileSync;
const kills = process.env.KILL_AT ? new RegExp(process.env.KILL_AT) : null;
let stops = process.env.STOP_AT ? new RegExp(process.env.STOP_AT) : null;
function point(text) {
  const line = text.replace(/\\s+/g, ' ').trim().slice(0, 120);
  append(process.env.POINTS, process.pid + ' ' + line + '\\n');
  if (kills?.test(line)) process.kill(process.pid, 'SIGKILL');
  if (stops?.test(line)) {
    stops = null;
    append(process.env.POINTS, process.pid + ' stopped\\n');
    process.kill(process.pid, 'SIGSTOP');
  }
}
const query = Client.prototype.query;
Client.prototype.query = function (statement, ...others) {
  const text = typeof statement === 'string' ? statement : (statement?.text ?? '');
  if (text !== '') point(text);
  return query.call(this, statement, ...others);
};
const rename = fs.renameSync;
fs.renameSync = (from, to) => {
  point('rename ' + String(to).split('/').at(-1));
  return rename(from, to);
};
syncBuiltinESMExports();
`;

const stopMsMax = 60_000;

/** A move that is under way. */
export interface RunningMove {
  readonly end: Promise<CommandEnd>;
  /** Points that it has passed: statements for PostgreSQL, and files. */
  readonly points: () => readonly string[];
  /** Waits until it has stopped where it was told to. */
  readonly stopped: () => Promise<void>;
  readonly signal: (name: 'SIGCONT' | 'SIGKILL') => void;
}

interface Watched {
  readonly args: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  /** A name for its files, which no other run has. */
  readonly files: string;
  readonly killAt?: string;
  readonly stopAt?: string;
}

/** Begins a command, watched. */
export function watchedCommand({ args, environment = {}, files, killAt = '', stopAt = '' }: Watched): RunningMove {
  const [file, notes] = [`${files}.cjs`, `${files}.txt`];
  writeFileSync(file, watcher);
  const watching = {
    NODE_OPTIONS: `--require=${file}`,
    ROOT: join(root, 'package.json'),
    POINTS: notes,
    KILL_AT: killAt,
    STOP_AT: stopAt,
  };
  const end = latchkey(args, { environment: { ...environment, ...watching } });
  const lines = () => (existsSync(notes) ? readFileSync(notes, 'utf8').trimEnd().split('\n') : []);
  return {
    end,
    points: () => lines().map((line) => line.slice(line.indexOf(' ') + 1)),
    stopped: () => vi.waitUntil(() => lines().some((line) => line.endsWith(' stopped')), stopMsMax).then(() => {}),
    signal: (name) => void process.kill(Number(lines()[0]?.split(' ')[0]), name),
  };
}
