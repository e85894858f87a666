import { describe, expect, it } from 'vitest';
import { TestClock } from '../../test/support/test-clock.ts';
import { RefusedError } from '../base/errors.ts';
import type { Reader, Tx } from '../db/database.ts';
import { callerConfirmation } from './confirmation.ts';
import type { HeldCredential, Principal } from './principal.ts';

const person = { userId: 'a'.repeat(24), orgId: 'b'.repeat(24) };
const sessionId = 'c'.repeat(24);
const tokenId = 'd'.repeat(24);
const session = (isAdmin: boolean): Principal => ({ ...person, isAdmin, kind: 'session', sessionId });
const token = (isAdmin: boolean): Principal => ({
  ...person,
  isAdmin,
  kind: 'token',
  tokenId,
  scopes: new Set(),
  expiresAtMs: null,
});
const clock = new TestClock();
// Nothing here looks into it: what the store says is what each case gives.
const tx = {} as Tx;

type Who = Parameters<ReturnType<typeof callerConfirmation>>[2];
const foreign: Who = { adminOrSelf: 'e'.repeat(24) };
const self: Who = { adminOrSelf: person.userId };

/** What becomes of somebody admitted as `caller` of whom the store says `present` now. */
async function verdict(caller: Principal, present: Partial<HeldCredential> | null, who: Who): Promise<string> {
  const asked: string[] = [];
  const find = (kind: string) => async (_: Reader, id: string) => {
    asked.push(`${kind} ${id}`);
    return present && { principal: caller, ended: null, expiresAtMs: null, ...present };
  };
  const confirm = callerConfirmation({ clock, findToken: find('token'), findSession: find('session') });
  const outcome = await confirm(tx, caller, who).then(
    () => 'confirmed',
    (error: unknown) => (error instanceof RefusedError ? error.refusal : String(error)),
  );
  expect(asked).toEqual([caller.kind === 'token' ? `token ${tokenId}` : `session ${sessionId}`]);
  return outcome;
}

describe('confirmation of a caller (AUTH-27, STORE-7)', () => {
  it.each(['member', 'admin', foreign, self] as const)('%j: an administrator who still is one', async (who) => {
    expect(await verdict(session(true), {}, who)).toBe('confirmed');
    expect(await verdict(token(true), {}, who)).toBe('confirmed');
  });

  it.each([
    ['member', 'confirmed'],
    ['admin', 'administratorRequired'],
    [foreign, 'administratorOrSelfRequired'],
    [self, 'confirmed'],
  ] as const)('%j: an administrator who no longer is one: %s (AUTH-29, AUTH-30)', async (who, expected) => {
    expect(await verdict(session(true), { principal: session(false) }, who)).toBe(expected);
    expect(await verdict(token(true), { principal: token(false) }, who)).toBe(expected);
  });

  it('somebody who became an administrator meanwhile is one', async () => {
    expect(await verdict(session(false), { principal: session(true) }, 'admin')).toBe('confirmed');
    expect(await verdict(session(false), { principal: session(true) }, foreign)).toBe('confirmed');
  });

  it.each([
    ['nothing', null, 'tokenInvalid'],
    ['that it was revoked', { ended: 'revoked' }, 'tokenRevoked'],
    ['that it was signed out', { ended: 'signedOut' }, 'sessionExpired'],
    ['that its owner is gone', { ended: 'ownerGone' }, 'tokenInvalid'],
  ] as const)('the store says %s', async (_, present, expected) => {
    for (const who of ['member', 'admin', foreign, self] as const) {
      expect(await verdict(token(true), present, who)).toBe(expected);
      expect(await verdict(session(true), present, who)).toBe(expected);
    }
  });

  it('its time counts to the millisecond (AUTH-12, AUTH-22)', async () => {
    const now = clock.now();
    for (const who of ['member', 'admin', foreign, self] as const) {
      expect(await verdict(token(true), { expiresAtMs: now }, who)).toBe('tokenExpired');
      expect(await verdict(session(true), { expiresAtMs: now }, who)).toBe('sessionExpired');
      expect(await verdict(token(true), { expiresAtMs: now + 1 }, who)).toBe('confirmed');
    }
  });
});
