/** The columns of a user that `userUpdated` is made of. */
interface UpdatedUser {
  readonly id: string;
  readonly org_id: string;
  readonly email: string;
  /** The last verified address while `email` is unverified. */
  readonly recovery_email: string | null;
  readonly full_name: string;
  readonly first_name: string | null;
  readonly middle_name: string | null;
  readonly last_name: string | null;
  readonly designation: string | null;
}

/**
 * The payload of `userUpdated`: the full current set; fields that are not set are left out, and
 * `emailVerified` is there, `false`, only of an address that is not verified. Rules: ADDRESS-15, EVENT-6.
 */
export function updatedPayload(user: UpdatedUser) {
  return {
    orgId: user.org_id,
    userId: user.id,
    email: user.email,
    ...(user.recovery_email === null ? {} : { emailVerified: false as const }),
    fullName: user.full_name,
    ...(user.first_name === null ? {} : { firstName: user.first_name }),
    ...(user.middle_name === null ? {} : { middleName: user.middle_name }),
    ...(user.last_name === null ? {} : { lastName: user.last_name }),
    ...(user.designation === null ? {} : { designation: user.designation }),
  };
}
