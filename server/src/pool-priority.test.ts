import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { expect, it } from 'vitest';

const probe = `
  import { getPriority } from 'node:os';
  import { readdirSync } from 'node:fs';
  const { lowerPoolPriority } = await import(process.argv[1]);
  const lowered = await lowerPoolPriority();
  const all = readdirSync('/proc/self/task').map(Number);
  const nice = Object.fromEntries(all.map((id) => [id, getPriority(id)]));
  console.log(JSON.stringify({ main: process.pid, lowered, nice }));
`;

it.runIf(process.platform === 'linux')('the threads of the pool give way, the one that answers does not', () => {
  const file = new URL('../../dist/server/src/pool-priority.js', import.meta.url).pathname;
  expect(readFileSync(file, 'utf8')).toContain('setPriority');
  const environment = { PATH: process.env['PATH'] ?? '', UV_THREADPOOL_SIZE: '4' };
  const args = ['--input-type=module', '--eval', probe, file];
  const { main, lowered, nice } = JSON.parse(
    execFileSync(process.execPath, args, { env: environment, encoding: 'utf8' }),
  );
  expect(lowered).toHaveLength(4);
  expect(lowered).not.toContain(main);
  expect(nice[main]).toBe(constants.priority.PRIORITY_NORMAL);
  for (const id of lowered) expect(nice[id]).toBe(constants.priority.PRIORITY_BELOW_NORMAL);
});
