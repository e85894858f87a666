import { z } from 'zod';
import { toTimestamp } from '../../base/clock.ts';
import { components, idResponse, timestamp } from '../../http/schemas.ts';
import { emailResponse } from '../../text/email-address.ts';
import { addressResponse, foldCase, toAddress } from '../../text/plain-text.ts';

/** The user record as it goes out. Rule: USER-3. */
export const userRecord = z.object({
  _id: idResponse,
  id: idResponse,
  slug: z.string(),
  fullName: z.string(),
  firstName: z.string().optional(),
  middleName: z.string().optional(),
  lastName: z.string().optional(),
  email: emailResponse,
  emailVerifiedAt: timestamp
    .nullable()
    .optional()
    .describe('When the address was verified; null: it is not. For administrators and the user alone'),
  emailVerified: z
    .literal(false)
    .optional()
    .describe('Other members see only that the address is not verified, where it is not'),
  mobile: z.string().optional(),
  designation: z.string().optional(),
  address: addressResponse.optional(),
  hasLoggedIn: z.boolean(),
  orgId: idResponse,
  isDeleted: z.boolean(),
  deletedBy: idResponse.optional(),
  createdAt: timestamp,
  updatedAt: timestamp,
});
components.add(userRecord, { id: 'User' });

/** A user as the store has it. */
export interface StoredUser {
  readonly id: string;
  readonly org_id: string;
  readonly slug: string;
  readonly email: string;
  readonly full_name: string;
  readonly name_key: string;
  readonly first_name: string | null;
  readonly middle_name: string | null;
  readonly last_name: string | null;
  readonly mobile: string | null;
  readonly designation: string | null;
  /** JSON. */
  readonly address: string | null;
  /** The last verified address while `email` is unverified; `null`: `email` is verified. */
  readonly recovery_email: string | null;
  /** Milliseconds since 1970: when the verified address became so; `null` once the user is erased. */
  readonly email_verified_at: number | null;
  /** Whether the user chose the verified address, and confirmed it by its link alone. */
  readonly email_is_own: 0 | 1;
  readonly has_logged_in: 0 | 1;
  /** Milliseconds since 1970; `null`: not since the account was made or restored. */
  readonly signed_in_at: number | null;
  readonly is_deleted: 0 | 1;
  readonly deleted_by: string | null;
  /** Milliseconds since 1970; `null`: the data of the user is still there. */
  readonly erased_at: number | null;
  readonly created_at: number;
  readonly updated_at: number;
}

/** Returns the time when the address of a user was verified; `null`: it is not. Rule: ADDRESS-1. */
function emailVerifiedAt({ recovery_email, email_verified_at: ms }: StoredUser): string | null {
  return recovery_email === null && ms !== null ? toTimestamp(ms) : null;
}

/** The user record as administrators and the user see it; fields that are not set are left out. Rules: ADDRESS-1, USER-3. */
export function toUserRecord(user: StoredUser) {
  return {
    _id: user.id,
    id: user.id,
    slug: user.slug,
    fullName: user.full_name,
    firstName: user.first_name ?? undefined,
    middleName: user.middle_name ?? undefined,
    lastName: user.last_name ?? undefined,
    email: user.email,
    emailVerifiedAt: emailVerifiedAt(user),
    mobile: user.mobile ?? undefined,
    designation: user.designation ?? undefined,
    address: toAddress(user.address),
    hasLoggedIn: user.has_logged_in === 1,
    orgId: user.org_id,
    isDeleted: user.is_deleted === 1,
    deletedBy: user.deleted_by ?? undefined,
    createdAt: toTimestamp(user.created_at),
    updatedAt: toTimestamp(user.updated_at),
  };
}

/** The record of a user as a caller may see it. Rules: ADDRESS-1, ADDRESS-15. */
export function recordFor(
  caller: { readonly userId: string; readonly isAdmin: boolean },
  record: z.input<typeof userRecord>,
): z.input<typeof userRecord> {
  if (caller.isAdmin || caller.userId === record._id) return record;
  const { emailVerifiedAt: at, ...shown } = record;
  return at === null ? { ...shown, emailVerified: false } : shown;
}

/** Returns the fields of a user that audit records compare. Rule: AUDIT-9. */
export function auditedUser(user: StoredUser) {
  return {
    email: user.email,
    fullName: user.full_name,
    firstName: user.first_name,
    middleName: user.middle_name,
    lastName: user.last_name,
    mobile: user.mobile,
    designation: user.designation,
    address: toAddress(user.address) ?? null,
    recoveryEmail: user.recovery_email,
    hasLoggedIn: user.has_logged_in === 1,
    isDeleted: user.is_deleted === 1,
  };
}

/** A user after being deleted. Rule: USER-34. */
export function deletedUser(user: StoredUser, deletedBy: string, nowMs: number): StoredUser {
  return { ...user, is_deleted: 1, has_logged_in: 0, signed_in_at: null, deleted_by: deletedBy, updated_at: nowMs };
}

/** A deleted user after being brought back, never having signed in. Rule: USER-39. */
export function restoredUser(user: StoredUser, nowMs: number): StoredUser {
  return { ...user, is_deleted: 0, has_logged_in: 0, signed_in_at: null, deleted_by: null, updated_at: nowMs };
}

/** Fields of a new user. */
interface NewUserFields {
  readonly id: string;
  readonly orgId: string;
  readonly slug: string;
  readonly email: string;
  readonly fullName: string;
  readonly mobile?: string | null;
  readonly designation?: string | null;
}

/** The row of a new user, who has never signed in. */
export function newUserRow(user: NewUserFields, nowMs: number): StoredUser {
  return {
    id: user.id,
    org_id: user.orgId,
    slug: user.slug,
    email: user.email,
    full_name: user.fullName,
    name_key: foldCase(user.fullName),
    first_name: null,
    middle_name: null,
    last_name: null,
    mobile: user.mobile ?? null,
    designation: user.designation ?? null,
    address: null,
    recovery_email: null,
    email_verified_at: nowMs,
    email_is_own: 0,
    has_logged_in: 0,
    signed_in_at: null,
    is_deleted: 0,
    deleted_by: null,
    erased_at: null,
    created_at: nowMs,
    updated_at: nowMs,
  };
}
