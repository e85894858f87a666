import { describe, expect, it } from 'vitest';
import { ApiError } from '../base/errors.ts';
import { readBearer, unauthorized } from './bearer.ts';

const errorOf = (act: () => unknown): string => {
  try {
    act();
    return 'none';
  } catch (error) {
    return error instanceof ApiError ? error.errorName : String(error);
  }
};

describe('readBearer', () => {
  it.each(['Bearer x', 'bearer x', 'BEARER x', 'Bearer   x'])(
    'reads %j: scheme in any case, spaces, token (AUTH-1)',
    (header) => {
      expect(readBearer(header, [])).toBe('x');
    },
  );

  it.each([
    undefined,
    '',
    'Bearer',
    'Bearer ',
    'x',
    'Basic x',
    'Bearerx',
    ' Bearer x',
    'Bearer x y',
    'Bearer x ',
    'Bearer x\t',
    'Bearer\tx',
    'Bearer x\n',
    'Bearer x, Bearer y',
    'Token x',
  ])('refuses %j as no bearer form (AUTH-19)', (header) => {
    expect(errorOf(() => readBearer(header, ['p_']))).toBe('credentialMissing');
  });

  it('refuses what is longer than any credential of ours without looking further (AUTH-20)', () => {
    expect(readBearer(`Bearer ${'x'.repeat(8_192)}`, [])).toHaveLength(8_192);
    expect(errorOf(() => readBearer(`Bearer ${'x'.repeat(8_193)}`, []))).toBe('tokenInvalid');
  });

  it.each([
    ['lkpat_abc', 'abc'],
    ['abc', 'abc'],
    ['old_abc', 'abc'],
    ['lkpat_lkpat_abc', 'lkpat_abc'],
    ['lkpat_old_abc', 'old_abc'],
    ['LKPAT_abc', 'LKPAT_abc'],
    ['lkpatabc', 'lkpatabc'],
    ['lkpat_', ''],
    ['abclkpat_', 'abclkpat_'],
  ])('takes one display prefix off %s, once and exactly (PAT-25, PAT-26)', (shown, bare) => {
    expect(readBearer(`Bearer ${shown}`, ['lkpat_', 'old_'])).toBe(bare);
  });

  it('takes the longest prefix off where one begins with another (PAT-26)', () => {
    expect(readBearer('Bearer lk_old_abc', ['lk_', 'lk_old_'])).toBe('abc');
    expect(readBearer('Bearer lk_abc', ['lk_old_', 'lk_'])).toBe('abc');
  });
});

describe('unauthorized', () => {
  it('always carries a challenge, without error= where no credential was sent (ERR-14)', () => {
    expect(unauthorized.missing().headers).toEqual({ 'www-authenticate': 'Bearer realm="latchkey"' });
    for (const refuse of [
      unauthorized.invalid,
      unauthorized.expired,
      unauthorized.revoked,
      unauthorized.sessionExpired,
    ]) {
      expect(refuse().status).toBe(401);
      expect(refuse().headers).toEqual({ 'www-authenticate': 'Bearer realm="latchkey", error="invalid_token"' });
    }
  });
});
