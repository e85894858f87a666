import { describe, expect, it } from 'vitest';
import { RefusedError } from '../errors.ts';
import { admit, type Policy } from './policy.ts';
import type { Principal } from './principal.ts';

const tokenId = '65f0c0ffee65f0c0ffee65f0';
const person = { userId: 'a'.repeat(24), orgId: 'b'.repeat(24) };
const session = (isAdmin: boolean): Principal => ({ ...person, isAdmin, kind: 'session', sessionId: 'c'.repeat(24) });
const token = (isAdmin: boolean, ...scopes: string[]): Principal => ({
  ...person,
  isAdmin,
  kind: 'token',
  tokenId,
  scopes: new Set(scopes),
  expiresAtMs: null,
});

function verdict(policy: Policy, caller: Principal, params: Record<string, string> = {}): string {
  try {
    admit(policy, caller, params);
    return 'admitted';
  } catch (error) {
    return error instanceof RefusedError ? error.refusal : String(error);
  }
}

const member: Policy = { who: 'member', scope: 'user:read' };
const admin: Policy = { who: 'admin', scope: 'user:invite' };
const adminFirst: Policy = { who: 'admin', scope: 'token:admin', adminFirst: true };
const sessionOnly: Policy = { who: 'member', sessionOnly: true };
const itself: Policy = { who: 'member', scope: 'token:write', selfParam: 'tokenId' };

describe('admit', () => {
  it.each([
    ['a session needs no scope (SCOPE-2)', member, session(false), 'admitted'],
    ['a token needs the scope', member, token(false), 'scopeMissing'],
    ['a token has the scope', member, token(false, 'user:read'), 'admitted'],
    ['a stronger-sounding scope is another scope', member, token(true, 'user:write', 'org:admin'), 'scopeMissing'],
    ['scopes are whole names', member, token(false, 'user', 'user:reader', 'USER:READ'), 'scopeMissing'],
    ['a member is no administrator (ERR-16)', admin, session(false), 'administratorRequired'],
    ['the scope makes no administrator (SCOPE-1)', admin, token(false, 'user:invite'), 'administratorRequired'],
    ['scope comes before who (HTTP-2)', admin, token(false), 'scopeMissing'],
    ['an administrator’s token needs the scope', admin, token(true), 'scopeMissing'],
    ['an administrator’s token with the scope', admin, token(true, 'user:invite'), 'admitted'],
    ['who comes before scope where it says so (HTTP-3)', adminFirst, token(false), 'tokenAdministratorRequired'],
    ['scope comes after that', adminFirst, token(true), 'scopeMissing'],
    ['both are there', adminFirst, token(true, 'token:admin'), 'admitted'],
    ['sessions alone (AUTH-32)', sessionOnly, token(true, 'org:admin'), 'sessionRequired'],
    ['sessions alone, and this is one', sessionOnly, session(false), 'admitted'],
  ] as const)('%s', (...[, policy, caller, expected]) => {
    expect(verdict(policy, caller)).toBe(expected);
  });

  it('lets a token do to itself, and only to itself, what the policy names (SCOPE-25)', () => {
    expect(verdict(itself, token(false), { tokenId })).toBe('admitted');
    expect(verdict(itself, token(false), { tokenId: tokenId.toUpperCase() })).toBe('admitted');
    expect(verdict(itself, token(false), { tokenId: `${tokenId} ` })).toBe('scopeMissing');
    expect(verdict(itself, token(false), { tokenId: 'd'.repeat(24) })).toBe('scopeMissing');
    expect(verdict(itself, token(false), { id: tokenId })).toBe('scopeMissing');
    expect(verdict(itself, token(false), {})).toBe('scopeMissing');
  });
});
