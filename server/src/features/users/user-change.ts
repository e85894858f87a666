import { z } from 'zod';
import { refuseInput } from '../../base/errors.ts';
import { emailAddress } from '../../text/email-address.ts';
import {
  clearableAddress,
  clearableMobile,
  clearableText,
  foldCase,
  plainText,
  storedAddress,
  textMax,
} from '../../text/plain-text.ts';
import type { StoredUser } from './user.ts';

const email = emailAddress
  .describe('The address to sign in with; unique among all users, deleted ones included')
  .meta({ examples: ['katherine@example.com'] });
const fullName = plainText().meta({ examples: ['Katherine Johnson'] });
const firstName = clearableText
  .describe('Where the full name is "first last", it follows')
  .meta({ examples: ['Katherine'] });
const lastName = clearableText
  .describe('Where the full name is "first last", it follows')
  .meta({ examples: ['Johnson'] });
const designation = clearableText.describe('Job title').meta({ examples: ['Mathematician'] });

/** The fields that have a route of their own: the last part of its path, and its body. Rules: USER-22 to USER-24. */
export const fieldBodies = {
  fullname: z.object({ fullName }),
  firstName: z.object({ firstName }),
  lastName: z.object({ lastName }),
  designation: z.object({ designation }),
  email: z.object({ email }),
} as const;

/** Fields of a user that can be changed; absent ones stay. Rules: USER-25, USER-26, USER-29. */
export const wholeBody = z.object({
  email,
  fullName: fullName.optional(),
  firstName: firstName.optional(),
  middleName: clearableText.optional().meta({ examples: ['Coleman'] }),
  lastName: lastName.optional(),
  mobile: clearableMobile
    .optional()
    .describe('10 to 15 digits, optionally after a +')
    .meta({ examples: ['+442079460001'] }),
  designation: designation.optional(),
  address: clearableAddress.optional().describe('Replaced as a whole'),
  hasLoggedIn: z
    .boolean()
    .optional()
    .describe('Whether the user counts as having signed in; it unlocks nothing. Only an administrator’s word is taken')
    .meta({ examples: [true] }),
});

/** A change to a user: each field is absent or has its new value. */
export type UserChange = Partial<z.output<typeof wholeBody>>;

function joined(first: string | null, last: string | null): string {
  return [first, last].filter((part) => part !== null).join(' ');
}

/** The full name after a change: as given, or following first and last name where it was made of them. Rule: USER-32. */
function fullNameAfter(before: StoredUser, change: UserChange): string {
  if (change.fullName !== undefined) return change.fullName;
  const { firstName = before.first_name, lastName = before.last_name } = change;
  if (before.full_name !== joined(before.first_name, before.last_name)) return before.full_name;
  const following = joined(firstName, lastName) || before.full_name;
  if ([...following].length <= textMax) return following;
  const field = change.firstName === undefined ? 'body.lastName' : 'body.firstName';
  throw refuseInput({ field, message: `must make a full name of at most ${textMax} characters` });
}

/** Circumstances of a change. */
interface Making {
  readonly nowMs: number;
  /** An administrator in a session, or the operator, makes it: another address is verified then. */
  readonly verifies: boolean;
}

/** The address after a change, with the last verified one while it is unverified. Rules: ADDRESS-2, ADDRESS-3. */
function addressAfter(before: StoredUser, email: string, { nowMs, verifies }: Making) {
  if (email === before.email) return {};
  if (verifies) return { email, recovery_email: null, email_verified_at: nowMs, email_is_own: 0 as const };
  const verified = before.recovery_email ?? before.email;
  return { email, recovery_email: verified === email ? null : verified };
}

/** The user after a change. Throws `invalidInput` where first and last name would make too long a full name. */
export function applyChange(before: StoredUser, change: UserChange, making: Making): StoredUser {
  // Absent fields stay; `null` is a new value.
  const { email = before.email, hasLoggedIn = before.has_logged_in === 1 } = change;
  const { firstName = before.first_name, middleName = before.middle_name, lastName = before.last_name } = change;
  const { mobile = before.mobile, designation = before.designation } = change;
  const name = fullNameAfter(before, change);
  return {
    ...before,
    ...addressAfter(before, email, making),
    full_name: name,
    name_key: foldCase(name),
    first_name: firstName,
    middle_name: middleName,
    last_name: lastName,
    mobile,
    designation,
    address: change.address === undefined ? before.address : storedAddress(change.address),
    has_logged_in: hasLoggedIn ? 1 : 0,
    updated_at: making.nowMs,
  };
}
