import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { ensureServerIsBuilt } from '../support/server-process.ts';
import type { Json } from '../support/test-app.ts';

const root = resolve(import.meta.dirname, '../../..');

beforeAll(ensureServerIsBuilt);

/** Runs the suites of fault injection as `npm run faults` does. */
function faults(...args: readonly string[]) {
  return spawnSync(process.execPath, ['scripts/run.mjs', 'faults/run.ts', ...args], { cwd: root, encoding: 'utf8' });
}

describe('npm run faults -- events', () => {
  it('finds nothing lost, invented or out of order in a few kills, outages and power cuts (D1, D2, D5, EVENT-8, EVENT-9, EVENT-10, EVENT-17, STORE-1, STORE-2)', () => {
    const { status, stdout, stderr } = faults('events', '--short', '--json');
    const rows: Json[] = stdout === '' ? [stderr] : JSON.parse(stdout).rows;
    const told = rows.map(({ id, what, broker, lost, invented, disordered, unmet = [], broke }) => {
      return [id, what, broker, { faults: [lost, invented, disordered, unmet].flat(), broke }];
    });
    const well = { faults: [], broke: undefined };
    expect(told).toEqual([
      ['R1', 'kill -9 under load', 'NATS', well],
      ['R1', 'kill -9 under load', 'Redis', well],
      ['R1', 'kill -9 while founding', undefined, well],
      ['R1', 'kill -9 in a migration', undefined, well],
      ['R2', 'the broker is down', 'NATS', well],
      ['R2', 'the broker comes back empty', 'Redis', well],
      ['D5', 'power cuts', undefined, well],
    ]);
    expect(rows.every(({ events }) => events > 0)).toBe(true);
    expect(status).toBe(0);
  }, 240_000);
});

describe('npm run faults', () => {
  it('says what it can do, and refuses what it cannot', () => {
    expect(faults('--help')).toMatchObject({ status: 0, stdout: expect.stringContaining('--kills N') });
    expect(faults('events', '--kills', 'many')).toMatchObject({
      status: 1,
      stderr: 'faults: --kills must be a positive whole number, not "many"\n',
    });
    expect(faults('fire')).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('say which suite: npm run faults -- events | disk'),
    });
  });

  it.each([
    { name: 'damage', count: 8, rules: 'D6, STORE-10' },
    { name: 'clock', count: 4, rules: 'D7, AUTH-12, AUTH-21, AUTH-22, HTTP-29' },
    { name: 'upgrade', count: 1, rules: 'R10, STORE-9' },
  ])('-- $name finds nothing wrong in its $count rows ($rules)', { timeout: 120_000 }, ({ name, count }) => {
    const { status, stdout, stderr } = faults(name, '--short', '--json');
    const rows: Json[] = stdout === '' ? [{ stderr }] : JSON.parse(stdout).rows;
    const wrong = rows.filter(
      ({ faults, broke }) => !Array.isArray(faults) || faults.length > 0 || broke !== undefined,
    );
    expect(wrong).toEqual([]);
    expect([rows.length, status]).toEqual([count, 0]);
  });
});
