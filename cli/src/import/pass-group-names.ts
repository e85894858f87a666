import { addImportedGroup, planImportedGroup } from '../../../server/src/features/groups/public.ts';
import { foldCase } from '../../../server/src/text/plain-text.ts';
import { operator } from '../operator-store.ts';
import { atOnce, type Pass, step } from './pass.ts';

/** Groups by their folded names. One that is to be made has no id yet: it has no members either. */
export type GroupsByName = ReadonlyMap<string, { readonly id: string; readonly type: string }>;

/** Returns every group name of the file's users, as it is written first, by its folded form. */
function namesOf({ staging }: Pass): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const batch of staging.rows('users', atOnce)) {
    for (const name of batch.flatMap(({ content }) => content.groups)) {
      const folded = foldCase(name);
      if (!names.has(folded)) names.set(folded, name);
    }
  }
  return names;
}

/**
 * Finds the groups of the file's users, and creates missing ones where that is wanted; others are left out. Rule:
 * CLI-16.
 */
export async function passGroupNames(pass: Pass, isMaking: boolean): Promise<GroupsByName> {
  const { services, orgId, tally } = pass;
  const groups = new Map<string, { readonly id: string; readonly type: string }>();
  for (const [folded, name] of namesOf(pass)) {
    const group = { name, type: 'custom' } as const;
    const found = await step(pass, async (read, tx) => {
      const plan = await planImportedGroup(read, orgId, group);
      if (plan.what === 'same') return { id: plan.groupId, type: plan.type, isNew: false };
      if (!isMaking) return null;
      const id = tx ? await addImportedGroup(tx, services, { orgId, group, origin: operator }) : '';
      return { id, type: 'custom', isNew: true };
    });
    if (!found) continue;
    if (found.isNew) tally.count('groups', 'created');
    groups.set(folded, found);
  }
  return groups;
}
