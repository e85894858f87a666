import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { TestClock } from '../../test/support/test-clock.ts';
import { idGenerator } from './ids.ts';

describe('idGenerator', () => {
  it('gives 24 lower-case hexadecimal digits, never twice, in order of creation, however the clock jumps (ERR-8, STORE-4)', () => {
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -86_400_000, max: 86_400_000 }), { maxLength: 200 }), (jumps) => {
        const clock = new TestClock();
        const newId = idGenerator(clock);
        const ids = [newId()];
        for (const jump of jumps) {
          clock.advance(jump);
          ids.push(newId(), newId());
        }
        expect(ids.every((id) => /^[a-f0-9]{24}$/.test(id))).toBe(true);
        expect([...new Set(ids)].sort()).toEqual(ids);
      }),
    );
  });

  it('is not guessed from another process that began at the same moment (STORE-4)', () => {
    const first = Array.from({ length: 1_000 }, () => idGenerator(new TestClock())());
    expect(new Set(first).size).toBe(1_000);
  });
});
