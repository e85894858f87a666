import { describe, expect, it } from 'vitest';
import { lostBeforeMs, nameOf, requestMsMax, sortInvitees, toInvitationRecord } from './invitation.ts';

const user = (email: string, more: { is_deleted?: 0 | 1; recovery_email?: string } = {}) => ({
  id: `id of ${email}`,
  email,
  recovery_email: null,
  is_deleted: 0 as const,
  ...more,
});

describe('sortGuests', () => {
  const idsOf = (users: readonly { id: string }[]) => users.map(({ id }) => id);

  it('tells apart who is new, deleted, active, and active without having been reached (INVITE-6, INVITE-7, INVITE-15)', () => {
    const [active, missed, gone] = [user('active@x.io'), user('missed@x.io'), user('gone@x.io', { is_deleted: 1 })];
    const emails = ['new@x.io', active.email, missed.email, gone.email, 'newer@x.io'];
    const sorted = sortInvitees(emails, [active, missed, gone], new Set([missed.id]));
    expect(sorted.unknown).toEqual(['new@x.io', 'newer@x.io']);
    expect([idsOf(sorted.deleted), idsOf(sorted.unreached)]).toEqual([[gone.id], [missed.id]]);
  });

  it('makes no one new, and invites no one, by an address that only recovery mail goes to (USER-33)', () => {
    for (const is_deleted of [0, 1] as const) {
      const holder = user('now@x.io', { recovery_email: 'before@x.io', is_deleted });
      const sorted = sortInvitees(['before@x.io'], [holder], new Set([holder.id]));
      expect(sorted).toEqual({ unknown: [], deleted: [], unreached: [] });
    }
  });

  it('restores a deleted person whatever became of the last invitation (INVITE-7)', () => {
    const gone = user('gone@x.io', { is_deleted: 1 });
    const sorted = sortInvitees([gone.email], [gone], new Set([gone.id]));
    expect([idsOf(sorted.deleted), sorted.unreached]).toEqual([[gone.id], []]);
  });
});

it('nameOf is what stands before the @ (INVITE-8)', () => {
  expect(['grace@x.io', 'g.h+tag@x.io', 'x@xn--bcher-kva.example'].map(nameOf)).toEqual(['grace', 'g.h+tag', 'x']);
});

it('a mail has the time of its request, and half a minute more, to get an outcome (INVITE-15, INVITE-17)', () => {
  expect([requestMsMax, lostBeforeMs(100_000)]).toEqual([60_000, 10_000]);
});

describe('toInvitationRecord', () => {
  const stored = {
    userId: 'a'.repeat(24),
    email: 'a@x.io',
    fullName: 'A',
    status: 'pending',
    isReturning: 1,
    createdBy: null,
    createdAt: 0,
    expiresAt: null,
    signedInAt: null,
  } as const;

  it.each([
    ['sending', 'mail'],
    ['sent', 'mail'],
    ['failed', 'mail'],
    ['shown', 'link'],
  ] as const)('a link that is %s went by %s (INVITE-24)', (delivery, by) => {
    expect(toInvitationRecord({ ...stored, delivery }).delivery).toBe(by);
  });

  it('holds moments as timestamps, and null for none (INVITE-24, ERR-7)', () => {
    const none = toInvitationRecord({ ...stored, delivery: 'sent' });
    expect(none).toMatchObject({ isReturning: true, invitedBy: null, expiresAt: null, acceptedAt: null });
    const some = toInvitationRecord({ ...stored, delivery: 'sent', expiresAt: 1, signedInAt: 2, isReturning: 0 });
    const [invitedAt, expiresAt, acceptedAt] = [0, 1, 2].map((ms) => new Date(ms).toISOString());
    expect(some).toMatchObject({ isReturning: false, invitedAt, expiresAt, acceptedAt });
  });
});
