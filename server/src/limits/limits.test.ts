import { describe, expect, it } from 'vitest';
import { TestClock } from '../../test/support/test-clock.ts';
import { countsInMemory } from './limit-counts.ts';
import { limits, networkOf } from './limits.ts';

describe('networkOf', () => {
  it.each([
    ['10.1.2.3', '10.1.2.3'],
    ['::ffff:10.1.2.3', '10.1.2.3'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:DB8:1:2::99', '2001:db8:1:2::/64'],
    ['::1', '0:0:0:0::/64'],
    ['not an address', 'not an address'],
  ])('takes %s as %s: one customer, one key', (address, network) => {
    expect(networkOf(address)).toBe(network);
  });
});

describe('limits', () => {
  it('limit nothing when they are off (CONFIG-14)', async () => {
    const off = limits({ isOn: () => false, clock: new TestClock(), counts: countsInMemory() });
    for (let act = 0; act < 1_000; act += 1) await off.count('mint', 'one');
    expect(await off.tryCount('mint', 'one')).toBe(true);
  });
});
