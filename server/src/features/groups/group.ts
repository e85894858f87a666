import { z } from 'zod';
import { toTimestamp } from '../../base/clock.ts';
import { ApiError } from '../../base/errors.ts';
import { components, idResponse, timestamp } from '../../http/schemas.ts';
import { foldCase } from '../../text/plain-text.ts';

/** Groups that every organization has; they cannot be deleted. Rule: ORG-10. */
export const defaultGroups = ['admin', 'everyone', 'standard'] as const;

/** The type, and the name, of such a group. */
export type DefaultGroup = (typeof defaultGroups)[number];

const groupItem = z.object({
  _id: idResponse,
  slug: z.string(),
  name: z.string(),
  type: z.enum(['admin', 'standard', 'everyone', 'custom']),
  orgId: idResponse,
  isSystem: z.boolean(),
  isDeleted: z.boolean(),
  createdAt: timestamp,
  updatedAt: timestamp,
});

/** A group as it goes out, with the ids of its members. Rules: GROUP-1, GROUP-9. */
export const groupRecord = groupItem.extend({ users: z.array(idResponse) });
components.add(groupRecord, { id: 'UserGroup' });

/** A group in a list. Rule: GROUP-4. */
export const groupListItem = groupItem.extend({ userCount: z.int() });
components.add(groupListItem, { id: 'ListedUserGroup' });

/** A group as the store has it. */
export interface StoredGroup {
  readonly id: string;
  readonly org_id: string;
  readonly slug: string;
  readonly name: string;
  readonly name_key: string;
  readonly type: 'admin' | 'standard' | 'everyone' | 'custom';
  readonly is_system: 0 | 1;
  readonly is_deleted: 0 | 1;
  readonly created_at: number;
  readonly updated_at: number;
}

function toItem(group: StoredGroup) {
  return {
    _id: group.id,
    slug: group.slug,
    name: group.name,
    type: group.type,
    orgId: group.org_id,
    isSystem: group.is_system === 1,
    isDeleted: group.is_deleted === 1,
    createdAt: toTimestamp(group.created_at),
    updatedAt: toTimestamp(group.updated_at),
  };
}

/** A group with the ids of its members. */
export function toGroupRecord(group: StoredGroup, users: readonly string[]) {
  return { ...toItem(group), users: [...users] };
}

/** A group with the number of its members. */
export function toGroupListItem(group: StoredGroup & { readonly userCount: number }) {
  return { ...toItem(group), userCount: group.userCount };
}

/**
 * Returns the group, if it can be changed. Throws `notFound` for an unknown one, and `groupManaged` for a default
 * group. Rules: GROUP-11 to GROUP-13.
 */
export function requireChangeable(group: StoredGroup | undefined): StoredGroup {
  if (!group) throw new ApiError('notFound');
  if (group.is_system === 1) throw new ApiError('groupManaged');
  return group;
}

/** Returns the row of a new group, which can be changed. */
export function newGroupRow(
  group: {
    readonly id: string;
    readonly orgId: string;
    readonly slug: string;
    readonly name: string;
    readonly type: 'standard' | 'custom';
  },
  nowMs: number,
): StoredGroup {
  return {
    id: group.id,
    org_id: group.orgId,
    slug: group.slug,
    name: group.name,
    name_key: foldCase(group.name),
    type: group.type,
    is_system: 0,
    is_deleted: 0,
    created_at: nowMs,
    updated_at: nowMs,
  };
}
