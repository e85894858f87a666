import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { constants, getPriority } from 'node:os';
import { describe, expect, it } from 'vitest';

/** The threads of the pool are made together, when the first of them is needed: they are what is new then. */
const probe = `
  const { getPriority } = require('node:os');
  const { readdirSync } = require('node:fs');
  const { pbkdf2 } = require('node:crypto');
  const threads = () => readdirSync('/proc/self/task').map(Number);
  const before = threads();
  pbkdf2('', '', 1, 8, 'sha512', async () => {
    const pool = threads().filter((id) => !before.includes(id));
    const { lowerPoolPriority } = await import(process.argv[1]);
    const lowered = await lowerPoolPriority(process.env.UV_THREADPOOL_SIZE);
    const nice = Object.fromEntries(threads().map((id) => [id, getPriority(id)]));
    console.log(JSON.stringify({ main: process.pid, pool, lowered, nice }));
  });
`;

describe.runIf(process.platform === 'linux')('the threads of the pool give way, the one that answers does not', () => {
  it.each([
    [{}, 4],
    [{ UV_THREADPOOL_SIZE: '3' }, 3],
    [{ UV_THREADPOOL_SIZE: '0' }, 1],
  ])('%j', (given, count) => {
    const file = new URL('../../../dist/server/src/process/pool-priority.js', import.meta.url).pathname;
    expect(readFileSync(file, 'utf8')).toContain('setPriority');
    const environment = { PATH: process.env['PATH'] ?? '', ...given };
    const args = ['--input-type=commonjs', '--eval', probe, file];
    const { main, pool, lowered, nice } = JSON.parse(
      execFileSync(process.execPath, args, { env: environment, encoding: 'utf8' }),
    );
    expect(pool).toHaveLength(count);
    expect(new Set(lowered)).toEqual(new Set(pool));
    // What runs the tests may itself give way to others.
    const own = getPriority();
    expect(nice[main]).toBe(own);
    const below = Math.min(own + constants.priority.PRIORITY_BELOW_NORMAL, constants.priority.PRIORITY_LOW);
    for (const id of lowered) expect(nice[id]).toBe(below);
  });
});
