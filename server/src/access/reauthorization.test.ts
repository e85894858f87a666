import { describe, expect, it } from 'vitest';
import { TestClock } from '../../test/support/test-clock.ts';
import { ApiError } from '../base/errors.ts';
import type { Reader, Tx } from '../db/database.ts';
import type { Policy } from './policy.ts';
import type { CredentialRecord, Principal } from './principal.ts';
import { reauthorization } from './reauthorization.ts';

const user = { userId: 'a'.repeat(24), orgId: 'b'.repeat(24) };
const sessionId = 'c'.repeat(24);
const tokenId = 'd'.repeat(24);
const session = (isAdmin: boolean): Principal => ({ ...user, isAdmin, kind: 'session', sessionId });
const token = (isAdmin: boolean): Principal => ({
  ...user,
  isAdmin,
  kind: 'token',
  tokenId,
  scopes: new Set(),
  expiresAtMs: null,
});
const clock = new TestClock();
// Nothing here looks into it: what the store says is what each case gives.
const tx = {} as Tx;

interface Demand {
  readonly policy: Policy;
  readonly params: Readonly<Record<string, string>>;
}
const member: Demand = { policy: { who: 'member', anyScope: true }, params: {} };
const admin: Demand = { policy: { who: 'admin', anyScope: true }, params: {} };
const foreign: Demand = { policy: { who: 'adminOrSelf', anyScope: true }, params: { id: 'e'.repeat(24) } };
const self: Demand = { policy: { who: 'adminOrSelf', anyScope: true }, params: { id: user.userId.toUpperCase() } };

/** What becomes of a user admitted as `caller` of whom the store says `present` now. */
async function verdict(caller: Principal, present: Partial<CredentialRecord> | null, demand: Demand): Promise<string> {
  const asked: string[] = [];
  const find = (kind: string) => async (_: Reader, id: string) => {
    asked.push(`${kind} ${id}`);
    return present && { principal: caller, invalidReason: null, expiresAtMs: null, ...present };
  };
  const reauthorize = reauthorization({ clock, findToken: find('token'), findSession: find('session') });
  const outcome = await reauthorize(tx, caller, demand).then(
    () => 'admitted',
    (error: unknown) => (error instanceof ApiError ? error.errorName : String(error)),
  );
  expect(asked).toEqual([caller.kind === 'token' ? `token ${tokenId}` : `session ${sessionId}`]);
  return outcome;
}

describe('reauthorization of a caller (AUTH-27, STORE-7)', () => {
  it.each([member, admin, foreign, self])('%j: an administrator who still is one', async (who) => {
    expect(await verdict(session(true), {}, who)).toBe('admitted');
    expect(await verdict(token(true), {}, who)).toBe('admitted');
  });

  it.each([
    [member, 'admitted'],
    [admin, 'administratorRequired'],
    [foreign, 'administratorOrSelfRequired'],
    [self, 'admitted'],
  ] as const)('%j: an administrator who no longer is one: %s (AUTH-29, AUTH-30)', async (who, expected) => {
    expect(await verdict(session(true), { principal: session(false) }, who)).toBe(expected);
    expect(await verdict(token(true), { principal: token(false) }, who)).toBe(expected);
  });

  it('someone who became an administrator meanwhile is one', async () => {
    expect(await verdict(session(false), { principal: session(true) }, admin)).toBe('admitted');
    expect(await verdict(session(false), { principal: session(true) }, foreign)).toBe('admitted');
  });

  it.each([
    ['nothing', null, 'tokenInvalid'],
    ['that it was revoked', { invalidReason: 'revoked' }, 'tokenRevoked'],
    ['that it was signed out', { invalidReason: 'signedOut' }, 'sessionExpired'],
    ['that its owner is gone', { invalidReason: 'ownerGone' }, 'tokenInvalid'],
  ] as const)('the store says %s', async (_, present, expected) => {
    for (const who of [member, admin, foreign, self]) {
      expect(await verdict(token(true), present, who)).toBe(expected);
      expect(await verdict(session(true), present, who)).toBe(expected);
    }
  });

  it('its time counts to the millisecond (AUTH-12, AUTH-22)', async () => {
    const now = clock.now();
    for (const who of [member, admin, foreign, self]) {
      expect(await verdict(token(true), { expiresAtMs: now }, who)).toBe('tokenExpired');
      expect(await verdict(session(true), { expiresAtMs: now }, who)).toBe('sessionExpired');
      expect(await verdict(token(true), { expiresAtMs: now + 1 }, who)).toBe('admitted');
    }
  });

  it('the scope of the policy is asked for again, but not of a token that acts on itself (SCOPE-25)', async () => {
    const policy: Policy = { who: 'member', scope: 'token:write', selfParam: 'tokenId' };
    const on = (id: string): Demand => ({ policy, params: { tokenId: id } });
    const able = { ...token(false), scopes: new Set(['token:write']) };
    expect(await verdict(able, {}, on('f'.repeat(24)))).toBe('admitted');
    expect(await verdict(able, { principal: token(false) }, on('f'.repeat(24)))).toBe('scopeMissing');
    expect(await verdict(able, { principal: token(false) }, on(tokenId))).toBe('admitted');
  });

  it('400: whom the policy refuses as the lists of all tokens do (ERR-13)', async () => {
    const policy: Policy = { who: 'admin', scope: 'token:admin', adminFirst: true };
    const demand: Demand = { policy, params: {} };
    expect(await verdict(session(true), { principal: session(false) }, demand)).toBe('tokenAdministratorRequired');
  });
});
