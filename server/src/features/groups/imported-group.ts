import { foldCase } from '../../text/plain-text.ts';
import type { StoredGroup } from './group.ts';

/** A group as a file tells of one, valid in itself. */
export interface ImportedGroup {
  /** Kept. Absent: the file knows groups by their names alone. */
  readonly id?: string;
  readonly name: string;
  readonly type: 'admin' | 'standard' | 'everyone' | 'custom';
  readonly isDeleted?: boolean | undefined;
  /** Milliseconds since 1970. */
  readonly createdAt?: number | undefined;
}

/** Plan for importing a group. */
export type GroupPlan =
  | { readonly what: 'add' }
  /** It is here already: members may join it. */
  | { readonly what: 'same'; readonly groupId: string; readonly type: StoredGroup['type'] }
  | { readonly what: 'leave'; readonly reason: string }
  | { readonly what: 'refuse'; readonly field: string; readonly message: string };

/** Returns whether it is a default group, which is recognized by its type. */
function isDefault({ type, name }: ImportedGroup): boolean {
  return type === 'admin' || type === 'everyone' || (type === 'standard' && foldCase(name) === 'standard');
}

/**
 * Plans the import of a group. Rules: CLI-16, CLI-17, GROUP-3, GROUP-13.
 * @param present existing groups with its id, its name or its type, deleted or not
 */
export function planGroup(group: ImportedGroup, present: readonly StoredGroup[]): GroupPlan {
  if (isDefault(group)) {
    const ours = present.find(({ type, is_system }) => type === group.type && is_system === 1);
    return ours ? { what: 'same', groupId: ours.id, type: ours.type } : { what: 'add' };
  }
  if (group.isDeleted) return { what: 'leave', reason: 'groups that are deleted in the file' };
  const sameId = group.id === undefined ? undefined : present.find(({ id }) => id === group.id);
  if (sameId?.is_deleted === 1) return { what: 'leave', reason: 'groups that are deleted here' };
  if (sameId) return { what: 'same', groupId: sameId.id, type: sameId.type };
  const nameKey = foldCase(group.name);
  const sameName = present.find(({ name_key, is_deleted }) => name_key === nameKey && is_deleted === 0);
  if (!sameName) return { what: 'add' };
  if (group.id === undefined) return { what: 'same', groupId: sameName.id, type: sameName.type };
  return { what: 'refuse', field: 'name', message: 'belongs to another group here' };
}
