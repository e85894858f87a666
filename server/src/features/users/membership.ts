/** One membership of one user, as the store has it; a user without any group has one with neither name nor type. */
export interface StoredMembership {
  readonly id: string;
  readonly orgId: string;
  readonly fullName: string;
  readonly email: string;
  readonly hasLoggedIn: 0 | 1;
  readonly groupName: string | null;
  readonly groupType: string | null;
}

interface WithGroups {
  readonly _id: string;
  readonly userId: string;
  readonly orgId: string;
  readonly fullName: string;
  readonly email: string;
  readonly hasLoggedIn: boolean;
  readonly groups: { readonly name: string; readonly type: string }[];
}

function withoutGroups({ id, orgId, fullName, email, hasLoggedIn }: StoredMembership): WithGroups {
  return { _id: id, userId: id, orgId, fullName, email, hasLoggedIn: hasLoggedIn === 1, groups: [] };
}

function addMembership(users: WithGroups[], row: StoredMembership): void {
  const last = users.at(-1);
  const user = last?._id === row.id ? last : withoutGroups(row);
  if (user !== last) users.push(user);
  if (row.groupName !== null && row.groupType !== null) user.groups.push({ name: row.groupName, type: row.groupType });
}

/**
 * Users with their groups, out of memberships that come user by user. Rule: USER-19.
 * @param batches none of them empty; a user's memberships may be spread over two
 */
export async function* mergeMemberships(
  rowBatches: AsyncIterable<readonly StoredMembership[]>,
): AsyncGenerator<readonly WithGroups[]> {
  let users: WithGroups[] = [];
  for await (const rows of rowBatches) {
    for (const row of rows) addMembership(users, row);
    // The next batch may go on with the last one.
    const complete = users.slice(0, -1);
    users = users.slice(-1);
    if (complete.length > 0) yield complete;
  }
  if (users.length > 0) yield users;
}
