import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { closestName } from './closest.ts';

const known = ['name', 'scopes', 'expiryDays', 'emails', 'groupIds'];

describe('the name that was meant (CRED-2)', () => {
  it.each([
    ['scope', 'scopes'],
    ['Scopes', 'scopes'],
    ['socpes', 'scopes'],
    ['expiry_days', 'expiryDays'],
    ['expiry', 'expiryDays'],
    ['expiriDay', 'expiryDays'],
    ['groups', 'groupIds'],
    ['groupId', 'groupIds'],
    ['permissions', null],
    ['na', null],
    ['', null],
    ['__', null],
  ])('%s: %s', (unknown, meant) => {
    expect(closestName(unknown, known)).toBe(meant);
  });

  it('is found with any one letter wrong, and takes no time however long the unknown one is', () => {
    fc.assert(
      fc.property(fc.constantFrom(...known), fc.nat(), fc.constantFrom('', 'x'), (name, at, put) => {
        const place = at % name.length;
        expect(closestName(name.slice(0, place) + put + name.slice(place + 1), known)).toBe(name);
      }),
    );
    expect(closestName('s'.repeat(1_000_000), known)).toBeNull();
    fc.assert(fc.property(fc.string({ unit: 'binary' }), (text) => void closestName(text, known)));
  });
});
