import { describe, expect, it } from 'vitest';
import { ApiError } from '../base/errors.ts';
import { admit, type Policy } from './policy.ts';
import type { Principal, ServicePrincipal } from './principal.ts';

const tokenId = '65f0c0ffee65f0c0ffee65f0';
const user = { userId: 'a'.repeat(24), orgId: 'b'.repeat(24) };
const session = (isAdmin: boolean): Principal => ({ ...user, isAdmin, kind: 'session', sessionId: 'c'.repeat(24) });
const token = (isAdmin: boolean, ...scopes: string[]): Principal => ({
  ...user,
  isAdmin,
  kind: 'token',
  tokenId,
  scopes: new Set(scopes),
  expiresAtMs: null,
});

const service = (...scopes: string[]): ServicePrincipal => ({
  kind: 'service',
  clientId: null,
  scopes: new Set(scopes),
  isOrganizationDeleted: false,
  expiresAtMs: 0,
});

function verdict(policy: Policy, caller: Principal | ServicePrincipal, params: Record<string, string> = {}): string {
  try {
    admit(policy, caller, params);
    return 'admitted';
  } catch (error) {
    return error instanceof ApiError ? error.errorName : String(error);
  }
}

const member: Policy = { who: 'member', scope: 'user:read' };
const admin: Policy = { who: 'admin', scope: 'user:invite' };
const adminFirst: Policy = { who: 'admin', scope: 'token:admin', adminFirst: true };
const sessionOnly: Policy = { who: 'member', sessionOnly: true };
const adminOrSelf: Policy = { who: 'adminOrSelf', scope: 'user:write' };
const lookUp: Policy = { who: 'service', scope: 'USER_LOOKUP' };
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

  it.each([
    ['an administrator, on anybody', session(true), 'd'.repeat(24), 'admitted'],
    ['somebody, on themselves', session(false), user.userId, 'admitted'],
    ['somebody, on themselves in upper case (HTTP-20)', session(false), user.userId.toUpperCase(), 'admitted'],
    ['somebody, on somebody else (ERR-17)', session(false), 'd'.repeat(24), 'administratorOrSelfRequired'],
    ['somebody, on what is no id (HTTP-4)', session(false), 'nonsense', 'administratorOrSelfRequired'],
    ['somebody, on nothing', session(false), '', 'administratorOrSelfRequired'],
    ['somebody, on an id with a space', session(false), `${user.userId} `, 'administratorOrSelfRequired'],
    ['somebody, by the id of the session', session(false), 'c'.repeat(24), 'administratorOrSelfRequired'],
    ['a token with the scope, on its owner', token(false, 'user:write'), user.userId, 'admitted'],
    [
      'a token with the scope, on somebody else',
      token(false, 'user:write'),
      'e'.repeat(24),
      'administratorOrSelfRequired',
    ],
    ['a token, by its own id', token(false, 'user:write'), tokenId, 'administratorOrSelfRequired'],
    ['a token without the scope, on its owner (HTTP-2)', token(false, 'user:read'), user.userId, 'scopeMissing'],
    ['an administrator’s token without the scope', token(true, 'org:admin'), 'd'.repeat(24), 'scopeMissing'],
    ['an administrator’s token with the scope', token(true, 'user:write'), 'd'.repeat(24), 'admitted'],
  ] as const)('adminOrSelf: %s (AUTH-30)', (...[, caller, id, expected]) => {
    expect(verdict(adminOrSelf, caller, { id })).toBe(expected);
  });

  it('adminOrSelf: a route that names no one is for administrators (AUTH-30)', () => {
    expect(verdict(adminOrSelf, session(false))).toBe('administratorOrSelfRequired');
    expect(verdict(adminOrSelf, session(false), { userId: user.userId })).toBe('administratorOrSelfRequired');
    expect(verdict(adminOrSelf, session(true))).toBe('admitted');
  });

  it.each([
    ['the scope', service('USER_LOOKUP'), 'admitted'],
    ['the scope among others', service('FETCH_CONFIG', 'USER_LOOKUP'), 'admitted'],
    ['no scope', service(), 'scopeMissing'],
    ['another scope', service('FETCH_CONFIG', 'EVENTS_READ', 'TOKEN_INTROSPECT'), 'scopeMissing'],
    ['the scope in other letters', service('user_lookup', 'USER_LOOKUP ', 'USER_LOOKUPS'), 'scopeMissing'],
  ] as const)('a service with %s (SERVICE-3)', (...[, caller, expected]) => {
    expect(verdict(lookUp, caller)).toBe(expected);
  });
});
