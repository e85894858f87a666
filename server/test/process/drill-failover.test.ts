import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { ensureServerIsBuilt } from '../support/server-process.ts';
import type { Json } from '../support/test-app.ts';

const root = resolve(import.meta.dirname, '../../..');

beforeAll(ensureServerIsBuilt);

describe('npm run faults -- failover', () => {
  it('two nodes lose nothing, and let no one in, when commits are cut off and the primary is killed under load (D3, STORE-1, STORE-2, STORE-18, AUTH-27, AUDIT-11)', () => {
    const args = ['scripts/run.mjs', 'faults/run.ts', 'failover', '--short', '--json'];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' });
    const rows: Json[] = stdout === '' ? [stderr] : JSON.parse(stdout).rows;
    const told = rows.map(({ id, what, faults, broke }) => [id, what, { faults, broke }]);
    const well = { faults: [], broke: undefined };
    expect(told).toEqual([
      ['D3', 'answers of commits are cut off', well],
      ['R3', 'the primary is killed, the standby promoted', well],
    ]);
    expect(rows.every(({ events }) => events > 2)).toBe(true);
    expect(status).toBe(0);
  }, 300_000);
});
