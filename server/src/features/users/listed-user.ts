import { z } from 'zod';
import { components, idResponse } from '../../http/schemas.ts';
import { type StoredUser, userRecord } from './user.ts';

const group = z.object({ _id: idResponse, name: z.string(), type: z.string() });

/** A user in a page of the list: the user record, and what tables of users show besides. Rule: FIT-76. */
export const listedUser = userRecord.extend({
  userId: idResponse,
  name: z.string().describe('The full name'),
  isActive: z.boolean().describe('Always true: deleted users are not listed'),
  role: z.enum(['Admin', 'Member']).describe('Admin: in the group admin'),
  groupCount: z.int().describe('Without the group everyone'),
  userGroups: z.array(group),
  createdAtTimestamp: z.int().describe('Milliseconds since 1970'),
});
components.add(listedUser, { id: 'ListedUser' });

interface Membership extends z.output<typeof group> {
  readonly userId: string;
}

/** Returns a user record as an item of a page. */
export function toListedUser(
  record: z.input<typeof userRecord>,
  { id, full_name: name, created_at: createdAtTimestamp }: StoredUser,
  memberships: readonly Membership[],
): z.input<typeof listedUser> {
  const userGroups = memberships
    .filter(({ userId }) => userId === id)
    .map(({ _id, name, type }) => ({ _id, name, type }));
  const types = userGroups.map(({ type }) => type);
  return {
    ...record,
    userId: id,
    name,
    isActive: true,
    role: types.includes('admin') ? 'Admin' : 'Member',
    groupCount: types.filter((type) => type !== 'everyone').length,
    userGroups,
    createdAtTimestamp,
  };
}
