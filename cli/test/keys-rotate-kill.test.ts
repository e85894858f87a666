import { join } from 'node:path';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { ensureServerIsBuilt, withDirectory } from '../../server/test/support/server-process.ts';
import { latchkeyJson } from './command-process.ts';
import { runUntil } from './kill-points.ts';
import { keyText, kids, leaveStore, smtp, startOn } from './rotated-keys.ts';

beforeAll(ensureServerIsBuilt);
vi.setConfig({ testTimeout: 300_000 });

/** The places of the steps that change something, or make a change last: before what only reads, all is as after the last. */
function stepsOf(points: readonly string[]): readonly number[] {
  const changes = /^(begin|commit|update "(settings|shared)|insert into "audit|(open|rename|rm)Sync)/;
  return [...points.keys()].filter((place) => changes.test(points[place] ?? ''));
}

describe('kill -9 of latchkey keys rotate', () => {
  it('before any of its steps leaves the earlier keys or the new ones, and tokens work (AUTH-59)', () =>
    withDirectory(async (directory) => {
      const from = join(directory, 'store');
      const { token } = await leaveStore(from);
      const [first = ''] = kids(from);
      const whole = await runUntil(['keys', 'rotate'], { from, place: 0 });
      expect(whole).toMatchObject({ code: 0, stderr: '' });
      expect(whole.points).toContain('begin immediate');
      expect(whole.points.some((point) => point.startsWith('renameSync'))).toBe(true);
      const seen = new Set<number>();
      for (const place of stepsOf(whole.points)) {
        const { signal, dataDir } = await runUntil(['keys', 'rotate'], { from, place: place + 1 });
        expect(signal).toBe('SIGKILL');
        const { length } = kids(dataDir);
        expect([length, kids(dataDir).at(-1)]).toEqual([length, first]);
        const works = { mailPassword: smtp.password, status: 200, published: length };
        expect(await startOn(dataDir, token), whole.points[place]).toEqual(works);
        seen.add(length);
      }
      expect(seen).toEqual(new Set([1, 2]));
    }));

  it('with --encryption, before any of its steps leaves a store that its key reads, at the next start or run (AUDIT-15)', () =>
    withDirectory(async (directory) => {
      const from = join(directory, 'store');
      const { token } = await leaveStore(from);
      const before = keyText(from);
      const whole = await runUntil(['keys', 'rotate', '--encryption'], { from, place: 0 });
      expect(whole).toMatchObject({ code: 0, stderr: '' });
      expect(whole.points.filter((point) => point.startsWith('renameSync'))).toHaveLength(2);
      const isOld = new Set<boolean>();
      for (const [count, place] of stepsOf(whole.points).entries()) {
        const { signal, dataDir } = await runUntil(['keys', 'rotate', '--encryption'], { from, place: place + 1 });
        expect(signal).toBe('SIGKILL');
        // Every other one by running it again, the rest by starting the service at once.
        if (count % 2 === 1) await latchkeyJson('keys', 'rotate', '--encryption', '--data-dir', dataDir);
        const works = { mailPassword: smtp.password, status: 200 };
        expect(await startOn(dataDir, token), whole.points[place]).toMatchObject(works);
        isOld.add(keyText(dataDir) === before);
      }
      expect(isOld).toEqual(new Set([true, false]));
    }));
});
