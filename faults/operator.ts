import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import type { Json } from '../harness/api-client.ts';
import { buildOf } from './builds.ts';

/**
 * Runs the `latchkey` command of the build that `entry` is the server of, with further variables; answers what it printed,
 * read as JSON. Throws its last words.
 */
export function latchkey(entry: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): Json {
  const command = join(buildOf(entry), 'bin/latchkey.js');
  const { status, stdout, stderr } = spawnSync(process.execPath, [command, ...args, '--json'], {
    encoding: 'utf8',
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...env },
  });
  if (status !== 0) throw new Error(`latchkey ${args[0]} ended with ${status}: ${stdout}${stderr}`.slice(0, 500));
  return JSON.parse(stdout);
}
