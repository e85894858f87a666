import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/**
 * Runs the `latchkey` command of the build that `entry` is the server of, with further variables; answers what it printed,
 * read as JSON. Throws its last words.
 */
export function latchkey(entry, args, env = {}) {
  const command = fileURLToPath(new URL('../../cli/src/main.js', `file://${entry}`));
  const { status, stdout, stderr } = spawnSync(process.execPath, [command, ...args, '--json'], {
    encoding: 'utf8',
    env: { PATH: process.env.PATH, HOME: process.env.HOME, ...env },
  });
  if (status !== 0) throw new Error(`latchkey ${args[0]} ended with ${status}: ${stdout}${stderr}`.slice(0, 500));
  return JSON.parse(stdout);
}
