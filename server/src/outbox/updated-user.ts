/** The columns of a user that `userUpdated` is made of. */
interface UpdatedUser {
  readonly id: string;
  readonly org_id: string;
  readonly email: string;
  readonly full_name: string;
  readonly first_name: string | null;
  readonly middle_name: string | null;
  readonly last_name: string | null;
  readonly designation: string | null;
}

/** The payload of `userUpdated`: the full current set; fields that are not set are left out. Rule: EVENT-6. */
export function updatedPayload(user: UpdatedUser) {
  return {
    orgId: user.org_id,
    userId: user.id,
    email: user.email,
    fullName: user.full_name,
    ...(user.first_name === null ? {} : { firstName: user.first_name }),
    ...(user.middle_name === null ? {} : { middleName: user.middle_name }),
    ...(user.last_name === null ? {} : { lastName: user.last_name }),
    ...(user.designation === null ? {} : { designation: user.designation }),
  };
}
