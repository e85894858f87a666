import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { capExpiry, effectiveScopes, toExpiry } from './token.ts';

const time = fc.integer({ min: 0, max: 4_000_000_000_000 });
const wholeSecond = fc.integer({ min: 0, max: 4_000_000_000 }).map((seconds) => seconds * 1_000);

describe('capExpiry', () => {
  it('is never later than either of its limits, and loses less than a second (SCOPE-23)', () => {
    fc.assert(
      fc.property(fc.option(time), fc.option(wholeSecond), (wanted, creator) => {
        const capped = capExpiry(wanted, creator) ?? Number.POSITIVE_INFINITY;
        const earliest = Math.min(wanted ?? Number.POSITIVE_INFINITY, creator ?? Number.POSITIVE_INFINITY);
        expect(capped).toBeLessThanOrEqual(earliest);
        expect(capped === earliest || earliest - capped < 1_000).toBe(true);
      }),
    );
  });

  it('is a whole second, as the claim in the token is (PAT-27)', () => {
    expect(capExpiry(1_999, null)).toBe(1_000);
    expect(capExpiry(1_999, 1_000)).toBe(1_000);
    expect(capExpiry(null, 5_000)).toBe(5_000);
    expect(capExpiry(null, null)).toBeNull();
  });
});

describe('effectiveScopes', () => {
  it('keeps what was granted and still may be, whole names only (SCOPE-9)', () => {
    const grantable = new Set(['org:read', 'user:read', 'token:read']);
    expect(effectiveScopes('user:read org:readx org:write org:read', grantable)).toEqual(
      new Set(['user:read', 'org:read']),
    );
    expect(effectiveScopes('', grantable)).toEqual(new Set());
  });
});

describe('toExpiry', () => {
  it('says Never, or the moment (PAT-12, ERR-7)', () => {
    expect(toExpiry(null)).toBe('Never');
    expect(toExpiry(0)).toBe('1970-01-01T00:00:00.000Z');
  });
});
