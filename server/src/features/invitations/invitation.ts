import { z } from 'zod';
import { minute, second, toTimestamp } from '../../base/clock.ts';
import { components, idResponse, idsOrNone, timestamp } from '../../http/schemas.ts';
import { emailResponse } from '../../text/email-address.ts';

/** Time limit for all mails of one request. Rule: INVITE-17. */
export const requestMsMax = minute;
/** A mail without an outcome by then was never sent: the service was stopped meanwhile. Rule: INVITE-15. */
const outcomeMsMax = requestMsMax + 30 * second;

/** Addresses that one request may invite. Rule: INVITE-4. */
export const emailsMax = 1_000;
const groupsMax = 100;

/** Groups in a request that all invited users are to be put into. */
export const groupIdsToJoin = idsOrNone
  .transform((given) => [...new Set(given)])
  .refine(({ length }) => length <= groupsMax, `must have at most ${groupsMax} items`);

/** Role in a request that all invited users are to have. Rule: FIT-77. */
export const givenRole = z
  .enum(['member', 'admin'])
  .describe('admin: they are put into the group admin, which takes a session')
  .meta({ examples: ['member'] });
/** Role that invited users are to have. */
export type GivenRole = z.output<typeof givenRole>;

/** Statuses of an invitation. Rule: INVITE-24. */
export const invitationStatuses = ['pending', 'accepted', 'expired', 'failed'] as const;

/** Status of an invitation. */
export type InvitationStatus = (typeof invitationStatuses)[number];

/** An invitation as it goes out. It never holds its link. Rules: INVITE-23, INVITE-24. */
export const invitationRecord = z.object({
  userId: idResponse,
  email: emailResponse,
  fullName: z.string(),
  status: z.enum(invitationStatuses),
  isReturning: z.boolean().describe('Whether the user had been a member before'),
  delivery: z.enum(['mail', 'link']).describe('Whether it went by mail, or was shown to an administrator as a link'),
  invitedBy: idResponse.nullable(),
  invitedAt: timestamp,
  expiresAt: timestamp.nullable().describe('null: the mail leads to the sign-in page, and never expires'),
  acceptedAt: timestamp.nullable().describe('The first sign-in'),
});
components.add(invitationRecord, { id: 'Invitation' });

/** An invitation as stored, with its user. */
export interface StoredInvitation {
  readonly userId: string;
  readonly email: string;
  readonly fullName: string;
  readonly status: InvitationStatus;
  readonly isReturning: 0 | 1;
  readonly delivery: 'sending' | 'sent' | 'failed' | 'shown';
  readonly createdBy: string | null;
  readonly createdAt: number;
  readonly expiresAt: number | null;
  readonly signedInAt: number | null;
}

/** An invitation as it goes out. Rule: INVITE-24. */
export function toInvitationRecord(stored: StoredInvitation) {
  const { userId, email, fullName, status, createdAt, expiresAt, signedInAt } = stored;
  return {
    userId,
    email,
    fullName,
    status,
    isReturning: stored.isReturning === 1,
    delivery: stored.delivery === 'shown' ? ('link' as const) : ('mail' as const),
    invitedBy: stored.createdBy,
    invitedAt: toTimestamp(createdAt),
    expiresAt: expiresAt === null ? null : toTimestamp(expiresAt),
    acceptedAt: signedInAt === null ? null : toTimestamp(signedInAt),
  };
}

/** Returns the time before which mails without an outcome have failed. */
export function lostBeforeMs(nowMs: number): number {
  return nowMs - outcomeMsMax;
}

/** Returns the name of a user of whom only the address is known. Rule: INVITE-8. */
export function nameOf(email: string): string {
  return email.slice(0, email.lastIndexOf('@'));
}

/** Users with some addresses, by what has to be done to invite them. */
export interface Invitees<U> {
  /** Addresses without a user. */
  readonly unknown: readonly string[];
  readonly deleted: readonly U[];
  /** Active users whom no invitation mail has reached. */
  readonly unreached: readonly U[];
}

interface AddressOwner {
  readonly id: string;
  readonly email: string;
  readonly recovery_email: string | null;
  readonly is_deleted: 0 | 1;
}

/**
 * Sorts addresses by what has to be done for them; those of active users who have been reached are left out. The
 * results are in the order of the addresses. Rules: INVITE-6, INVITE-7, INVITE-15.
 * @param holders the users who have one of the addresses, or get recovery mail there
 * @param unreachedIds ids of active users whose last invitation mail failed
 */
export function sortInvitees<U extends AddressOwner>(
  emails: readonly string[],
  owners: readonly U[],
  unreachedIds: ReadonlySet<string>,
): Invitees<U> {
  const taken = new Set(owners.flatMap(({ email, recovery_email }) => [email, recovery_email]));
  const byEmail = new Map(owners.map((holder) => [holder.email, holder]));
  const named = emails.flatMap((email) => byEmail.get(email) ?? []);
  return {
    unknown: emails.filter((email) => !taken.has(email)),
    deleted: named.filter((holder) => holder.is_deleted === 1),
    unreached: named.filter((holder) => holder.is_deleted === 0 && unreachedIds.has(holder.id)),
  };
}
