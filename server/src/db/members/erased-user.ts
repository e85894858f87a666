import { foldCase } from '../../text/plain-text.ts';

const fullName = 'Erased user';

/**
 * Returns the columns of an erased user. The address cannot be a user's: those have no capitals, and nothing below
 * `.invalid` can receive mail (RFC 2606). Rule: AUDIT-14.
 */
export function erasedUser(id: string, nowMs: number) {
  return {
    email: `Erased-${id}@erased.invalid`,
    full_name: fullName,
    name_key: foldCase(fullName),
    first_name: null,
    middle_name: null,
    last_name: null,
    mobile: null,
    designation: null,
    address: null,
    recovery_email: null,
    email_verified_at: null,
    erased_at: nowMs,
    updated_at: nowMs,
  };
}
