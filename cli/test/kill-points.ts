import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type CommandEnd, latchkey, root } from './command-process.ts';

/**
 * Loaded into the command's process: notes each statement of its transaction and each change of a file in its data
 * directory, and kills it before the one at KILL_AT.
 */
const killer = `
const fs = require('node:fs');
const { createRequire, syncBuiltinESMExports } = require('node:module');
const Sqlite = createRequire(process.env.ROOT)('better-sqlite3');
const memory = new Sqlite(':memory:');
const prototype = Object.getPrototypeOf(memory.prepare('SELECT 1'));
memory.close();
const append = fs.appendFileSync;
let writer = null;
let seen = 0;
function point(text) {
  seen += 1;
  append(process.env.POINTS, text.replaceAll('\\n', ' ') + '\\n');
  if (seen === Number(process.env.KILL_AT)) process.kill(process.pid, 'SIGKILL');
}
for (const name of ['run', 'all', 'get']) {
  const original = prototype[name];
  prototype[name] = function (...args) {
    if (this.source === 'begin immediate') writer ??= this.database;
    if (this.database === writer) point(this.source);
    return original.apply(this, args);
  };
}
let written = null;
for (const name of ['openSync', 'writeSync', 'fsyncSync', 'renameSync', 'rmSync']) {
  const original = fs[name];
  fs[name] = function (...args) {
    const isOurs = typeof args[0] === 'string' && args[0].startsWith(process.env.WATCHED);
    const isChange = name === 'openSync' ? isOurs && args[1] === 'wx' : isOurs || args[0] === written;
    if (isChange) point(name + ' ' + String(args[0]).replace(/[0-9a-f-]{36}$/, '…'));
    const result = original.apply(this, args);
    if (name === 'openSync' && isChange) written = result;
    return result;
  };
}
syncBuiltinESMExports();
`;

/** End of a command, with the points that it had passed. */
interface Cut extends CommandEnd {
  readonly dataDir: string;
  /** The statements and changes of files, in order; the last one was not done where it was killed. */
  readonly points: readonly string[];
}

/**
 * Runs a command on a copy of a data directory and kills it before one of its statements or changes of a file.
 * @param place counts from 1; 0 kills it nowhere
 */
export async function runUntil(
  args: readonly string[],
  { from, place }: { readonly from: string; readonly place: number },
): Promise<Cut> {
  const dataDir = `${from}-${place}`;
  const points = `${dataDir}.txt`;
  const file = `${from}.cjs`;
  writeFileSync(file, killer);
  cpSync(from, dataDir, { recursive: true });
  const environment = {
    NODE_OPTIONS: `--require=${file}`,
    ROOT: join(root, 'package.json'),
    WATCHED: dataDir,
    POINTS: points,
    KILL_AT: String(place),
  };
  const end = await latchkey([...args, '--data-dir', dataDir], { environment });
  return { ...end, dataDir, points: readFileSync(points, 'utf8').trimEnd().split('\n') };
}
