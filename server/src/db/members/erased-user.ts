import { foldCase } from '../../text/plain-text.ts';

const fullName = 'Erased user';

/**
 * What is left of a user whose data is erased. The address is nobody's: addresses of people have no capitals, and nothing
 * below `.invalid` can be mailed to (RFC 2606). Rule: AUDIT-14.
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
