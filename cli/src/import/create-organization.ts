import { joinDefaultGroup } from '../../../server/src/features/groups/public.ts';
import { createImportedOrganization } from '../../../server/src/features/org/public.ts';
import { addImportedUsers } from '../../../server/src/features/users/public.ts';
import { CommandError } from '../failures.ts';
import { operator } from '../operator-store.ts';
import { atOnce, type Store } from './pass.ts';
import { comesWithOrganization } from './pass-groups.ts';
import type { Tally } from './report.ts';
import type { ImportedOrganization, Staged, Staging } from './staging.ts';

/** Data for creating the organization. */
export interface NewOrganization {
  readonly organization: ImportedOrganization;
  /** The first administrator, who comes with it. */
  readonly administrator: Staged<'users'>;
  /** Ids of the groups that come with every organization, as far as the dump knows them. */
  readonly groupIds: Readonly<Partial<Record<'admin' | 'everyone' | 'standard', string>>>;
}

function refuse(what: string): CommandError {
  return new CommandError('refused', `This store has no organization, and the file has no ${what}`);
}

/** Returns the first active user among some; `null` for none. */
function firstActive(staging: Staging, userIds: readonly string[]): Staged<'users'> | null {
  for (let start = 0; start < userIds.length; start += atOnce) {
    const some = staging.withIds('users', userIds.slice(start, start + atOnce));
    const active = some
      .filter(({ content }) => !content.user.isDeleted)
      .sort((one, other) => one.number - other.number);
    if (active[0]) return active[0];
  }
  return null;
}

/** Returns the data for creating the organization; ends the command where the file lacks them. Rule: CLI-17. */
export function findNewOrganization(staging: Staging): NewOrganization {
  const [[record] = []] = staging.rows('organization', 1);
  if (!record) throw refuse('document of one: create it with POST /api/v1/org, or put it into the file');
  const groupIds: Partial<Record<string, string>> = {};
  let administrator: Staged<'users'> | null = null;
  for (const batch of staging.rows('groups', atOnce)) {
    for (const { id, content } of batch.filter(({ content: { group } }) => comesWithOrganization(group))) {
      if (id !== null) groupIds[content.group.type] ??= id;
      if (content.group.type === 'admin') administrator ??= firstActive(staging, content.userIds);
    }
  }
  if (!administrator) throw refuse('active member of an admin group to administrate it');
  return { organization: record.content, administrator, groupIds };
}

/** Sets the system up, with its first administrator, in one transaction. Rules: CLI-17, STORE-6. */
export async function createOrganizationFor(
  services: Store,
  { organization, administrator, groupIds }: NewOrganization,
  { staging, tally }: { readonly staging: Staging; readonly tally: Tally },
): Promise<void> {
  const orgId = organization.id;
  const { user } = administrator.content;
  const [credentials] = staging.withIds('credentials', [administrator.id ?? '']);
  const users = [{ ...user, ...credentials?.content }];
  await services.db.transaction(async (tx) => {
    await createImportedOrganization(tx, services, { organization, groupIds, origin: operator });
    const [userId = ''] = await addImportedUsers(tx, services, {
      orgId,
      users,
      origin: operator,
      syncAction: 'none',
    });
    await joinDefaultGroup(tx, { orgId, userId, type: 'admin' });
  });
  tally.count('users', 'created');
  tally.memberships += 1;
  if (credentials) tally.passwords += 1;
  staging.drop(administrator);
}
