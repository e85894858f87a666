import type { z } from 'zod';
import { ApiError } from '../../base/errors.ts';
import { type addressResponse, storedAddress } from '../../text/plain-text.ts';
import { newUserRow, type StoredUser } from './user.ts';
import { applyChange, type UserChange } from './user-change.ts';

/** A user of a file, valid in itself. An absent field is not in the file; `null` says that there is no value. */
export interface ImportedUser {
  /** Kept. Absent: the file identifies users by their addresses alone. */
  readonly id?: string | undefined;
  /** Normalized. */
  readonly email: string;
  readonly fullName?: string | undefined;
  /** Full name of a new user, where the file has none. */
  readonly newFullName?: string | undefined;
  readonly firstName?: string | null | undefined;
  readonly middleName?: string | null | undefined;
  readonly lastName?: string | null | undefined;
  readonly mobile?: string | null | undefined;
  readonly designation?: string | null | undefined;
  readonly address?: z.output<typeof addressResponse> | null | undefined;
  readonly hasLoggedIn?: boolean | undefined;
  readonly isDeleted?: boolean | undefined;
  readonly deletedBy?: string | null | undefined;
  /** Milliseconds since 1970. */
  readonly createdAt?: number | undefined;
  /** Milliseconds since 1970; a user who exists is only changed when the file is newer. */
  readonly updatedAt?: number | undefined;
  /** Password hash, argon2id in PHC string form; taken for new users only. */
  readonly passwordHash?: string | undefined;
}

/** Plan for importing a user. */
export type UserPlan =
  | { readonly what: 'add' }
  | {
      readonly what: 'change';
      readonly before: StoredUser;
      readonly after: StoredUser;
      readonly fields: readonly string[];
    }
  | { readonly what: 'same'; readonly userId: string }
  /** It stays as it is here. */
  | { readonly what: 'leave'; readonly reason: string }
  | { readonly what: 'refuse'; readonly field: string; readonly message: string };

/** Existing users that conflict with, or are the same as, a user of a file. */
interface Present {
  readonly sameId: StoredUser | undefined;
  /**
   * The user who has the address verified; one who has it unverified loses it. Users other than `sameId` come first.
   */
  readonly owner: StoredUser | undefined;
  /** Whether `sameId` changed or proved the address here: that one stays. */
  readonly hasOwnAddress: boolean;
  readonly nowMs: number;
}

type Field = keyof UserChange;

const columns = [
  ['email', 'email'],
  ['fullName', 'full_name'],
  ['firstName', 'first_name'],
  ['middleName', 'middle_name'],
  ['lastName', 'last_name'],
  ['mobile', 'mobile'],
  ['designation', 'designation'],
] as const satisfies readonly (readonly [Field, keyof StoredUser])[];

/** Returns the changes in the file; a user who has signed in stays so. */
function changeOf(before: StoredUser, user: ImportedUser): UserChange | null {
  const different = columns.filter(([field, column]) => user[field] !== undefined && user[field] !== before[column]);
  const change: UserChange = Object.fromEntries(different.map(([field]) => [field, user[field]]));
  if (user.address !== undefined && storedAddress(user.address) !== before.address) change.address = user.address;
  if (user.hasLoggedIn && before.has_logged_in === 0) change.hasLoggedIn = true;
  return Object.keys(change).length === 0 ? null : change;
}

/** Returns the plan to change a user, or the error where first and last name would make too long a full name. */
function toChange(before: StoredUser, change: UserChange, nowMs: number): UserPlan {
  try {
    const after = applyChange(before, change, { nowMs, verifies: true });
    return { what: 'change', before, after, fields: Object.keys(change) };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return { what: 'refuse', field: 'fullName', message: 'would be too long when composed of first and last name' };
  }
}

const addressTaken = { what: 'refuse', field: 'email' } as const;

/** What a file says of a user who is here; the address that was changed here stays. Rule: ADDRESS-17. */
function planById(given: ImportedUser, before: StoredUser, { owner, hasOwnAddress }: Present): UserPlan {
  const user = hasOwnAddress ? { ...given, email: before.email } : given;
  const same = { what: 'same', userId: before.id } as const;
  if (before.erased_at !== null) return { what: 'leave', reason: 'users whose data was erased here' };
  const isDeleted = before.is_deleted === 1;
  if (isDeleted && !user.isDeleted) return { what: 'leave', reason: 'users who are deleted here' };
  if (!isDeleted && user.isDeleted) return { what: 'leave', reason: 'users who are deleted in the file, and not here' };
  if (isDeleted || (user.updatedAt ?? 0) <= before.updated_at) return same;
  const change = changeOf(before, user);
  if (!change) return same;
  if (change.email !== undefined && owner && owner.id !== before.id) {
    return { ...addressTaken, message: 'belongs to another user here' };
  }
  return toChange(before, change, user.updatedAt ?? before.updated_at);
}

function planByEmail(user: ImportedUser, owner: StoredUser, nowMs: number): UserPlan {
  if (owner.is_deleted === 1) return { ...addressTaken, message: 'belongs to a deleted user: restore that one' };
  const change = changeOf(owner, user);
  return change ? toChange(owner, change, nowMs) : { what: 'same', userId: owner.id };
}

/** Returns the name of a new user. */
function nameOf({ fullName, newFullName }: ImportedUser): string | undefined {
  return fullName ?? newFullName;
}

function planUser(user: ImportedUser, present: Present): UserPlan {
  const { sameId, owner, nowMs } = present;
  if (sameId) return planById(user, sameId, present);
  if (owner && user.id === undefined) return planByEmail(user, owner, nowMs);
  if (owner) return { ...addressTaken, message: 'belongs to another user here' };
  if (nameOf(user) === undefined) return { what: 'refuse', field: 'fullName', message: 'is missing' };
  return { what: 'add' };
}

/** Decides what is to become of people of a file, in their order. Rules: ADDRESS-17, CLI-16, CLI-17, USER-10, USER-33. */
export function planAll(
  users: readonly ImportedUser[],
  here: {
    /** Users with one of their ids, deleted or not. */
    readonly present: readonly StoredUser[];
    /** Users with one of their addresses, deleted or not, or with recovery mail there. */
    readonly having: readonly StoredUser[];
    /** Who of `present` changed or proved the address here. */
    readonly ownAddresses: ReadonlySet<string>;
    readonly nowMs: number;
  },
): readonly UserPlan[] {
  const { present, having, ownAddresses, nowMs } = here;
  const byId = new Map(present.map((user) => [user.id, user]));
  const owners = new Map<string, StoredUser[]>();
  for (const user of having) {
    const email = user.recovery_email ?? user.email;
    owners.set(email, [...(owners.get(email) ?? []), user]);
  }
  return users.map((user) => {
    const sameId = user.id === undefined ? undefined : byId.get(user.id);
    const some = owners.get(user.email) ?? [];
    const hasOwnAddress = sameId !== undefined && (sameId.recovery_email !== null || ownAddresses.has(sameId.id));
    const owner = some.find(({ id }) => id !== user.id) ?? some[0];
    return planUser(user, { sameId, owner, hasOwnAddress, nowMs });
  });
}

/** Returns the row of a new user of a file. */
export function importedUserRow(
  user: ImportedUser,
  made: { readonly id: string; readonly orgId: string; readonly slug: string; readonly nowMs: number },
): StoredUser {
  const { id, orgId, slug, nowMs } = made;
  const { email, mobile = null, designation = null } = user;
  const fullName = nameOf(user) ?? email;
  const createdAt = user.createdAt ?? nowMs;
  const updatedAt = Math.max(createdAt, user.updatedAt ?? createdAt);
  const hasLoggedIn = user.hasLoggedIn === true && !user.isDeleted;
  return {
    ...newUserRow({ id, orgId, slug, email, fullName, mobile, designation }, createdAt),
    first_name: user.firstName ?? null,
    middle_name: user.middleName ?? null,
    last_name: user.lastName ?? null,
    address: storedAddress(user.address),
    has_logged_in: hasLoggedIn ? 1 : 0,
    signed_in_at: hasLoggedIn ? updatedAt : null,
    is_deleted: user.isDeleted ? 1 : 0,
    deleted_by: user.isDeleted ? (user.deletedBy ?? null) : null,
    email_verified_at: nowMs,
    updated_at: updatedAt,
  };
}
