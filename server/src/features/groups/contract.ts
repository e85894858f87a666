import { nextSlug } from '../../db/counters.ts';
import type { Tx } from '../../db/database.ts';
import type { NewRow } from '../../db/tables.ts';
import type { Services } from '../../services.ts';
import { type DefaultGroup, defaultGroups } from './group.ts';
import { insertGroups, insertMember, selectDefaultGroupId } from './group-store.ts';

/** Makes the groups that come with an organization. Rule: ORG-10. */
export async function createDefaultGroups(tx: Tx, { clock, newId }: Services, orgId: string): Promise<void> {
  const nowMs = clock.now();
  const groups: NewRow<'user_groups'>[] = [];
  for (const name of defaultGroups) {
    groups.push({
      id: newId(),
      org_id: orgId,
      slug: await nextSlug(tx, 'usergroup'),
      name,
      name_key: name,
      type: name,
      is_system: 1,
      is_deleted: 0,
      created_at: nowMs,
      updated_at: nowMs,
    });
  }
  await insertGroups(tx, groups);
}

/** Puts somebody into one of the groups that came with the organization. */
export async function joinDefaultGroup(
  tx: Tx,
  { orgId, userId, type }: { readonly orgId: string; readonly userId: string; readonly type: DefaultGroup },
): Promise<void> {
  await insertMember(tx, await selectDefaultGroupId(tx, orgId, type), userId);
}
