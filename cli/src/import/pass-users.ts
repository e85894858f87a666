import type { Reader, Tx } from '../../../server/src/db/database.ts';
import { giveBackAddresses } from '../../../server/src/features/addresses/public.ts';
import { findJoining, joinImportedGroup } from '../../../server/src/features/groups/public.ts';
import { addImportedUsers, changeUser, planUsers } from '../../../server/src/features/users/public.ts';
import { foldCase } from '../../../server/src/text/plain-text.ts';
import { operator } from '../operator-store.ts';
import { atOnce, type Pass, step } from './pass.ts';
import type { GroupsByName } from './pass-group-names.ts';
import type { ImportedUser, Staged } from './staging.ts';

type Batch = readonly Staged<'users'>[];
type Plan = Awaited<ReturnType<typeof planUsers>>[number];

/** Plan for one record. */
interface Planned {
  readonly record: Staged<'users'>;
  readonly user: ImportedUser;
  readonly plan: Plan;
}

/** Returns the users of some records, each with the file's password for it. */
function usersOf({ staging }: Pass, batch: Batch): readonly ImportedUser[] {
  const ids = batch.flatMap(({ id }) => id ?? []);
  const hashes = new Map(staging.withIds('credentials', ids).map(({ id, content }) => [id, content.passwordHash]));
  return batch.map(({ id, content }) => {
    const passwordHash = id === null ? undefined : hashes.get(id);
    return passwordHash === undefined ? content.user : { ...content.user, passwordHash };
  });
}

/** A group name in the file that is unknown is a problem of the record. Rule: CLI-16. */
function unknownGroup({ content }: Staged<'users'>, groups: GroupsByName): string | null {
  return content.groups.find((name) => !groups.has(foldCase(name))) ?? null;
}

function count(pass: Pass, { record, user, plan }: Planned): void {
  const { tally, staging } = pass;
  switch (plan.what) {
    case 'add':
      tally.count('users', 'created');
      if (user.passwordHash !== undefined && !user.isDeleted) tally.passwords += 1;
      break;
    case 'change':
      tally.count('users', 'updated');
      break;
    case 'same':
      tally.count('users', 'unchanged');
      break;
    case 'leave':
      tally.skip('users', plan.reason);
      break;
    case 'refuse':
      staging.reject('users', record, plan);
      break;
  }
}

/** Writes what was planned; returns the ids of the users by the numbers of their records. */
async function write(pass: Pass, tx: Tx, planned: readonly Planned[]): Promise<ReadonlyMap<number, string>> {
  const { services, orgId } = pass;
  const added = planned.filter(({ plan }) => plan.what === 'add');
  const moved = planned.flatMap(({ plan }) =>
    plan.what === 'change' && plan.after.email !== plan.before.email ? [plan.after] : [],
  );
  // A user who holds one of the addresses unverified loses it. Rule: ADDRESS-6.
  const emails = [...added.map(({ user }) => user.email), ...moved.map(({ email }) => email)];
  if (emails.length > 0) await giveBackAddresses(tx, services, { orgId, emails, by: null, origin: operator });
  const input = { orgId, users: added.map(({ user }) => user), origin: operator, syncAction: 'immediate' as const };
  const ids = added.length > 0 ? await addImportedUsers(tx, services, input) : [];
  const userIds = new Map(added.map(({ record }, place) => [record.number, ids[place] ?? '']));
  for (const { plan } of planned) {
    if (plan.what !== 'change') continue;
    const { before, after, fields } = plan;
    const details = { fields, imported: true };
    await changeUser(tx, services, { before, after, by: null, origin: operator, details });
  }
  return userIds;
}

/** Returns the ids of the records whose users exist. */
function presentIds(planned: readonly Planned[]): ReadonlyMap<number, string> {
  return new Map(
    planned.flatMap(({ record, plan }): readonly [number, string][] => {
      if (plan.what === 'same') return [[record.number, plan.userId]];
      return plan.what === 'change' ? [[record.number, plan.after.id]] : [];
    }),
  );
}

/** Returns the wanted members of each group, by its folded name: ids, and the number of users without an id yet. */
function inputsOf(planned: readonly Planned[], ids: ReadonlyMap<number, string>) {
  const inputs = new Map<string, { readonly userIds: string[]; newUsers: number }>();
  for (const { record, plan } of planned) {
    if (plan.what === 'leave' || plan.what === 'refuse') continue;
    for (const name of record.content.groups.map(foldCase)) {
      const input = inputs.get(name) ?? { userIds: [], newUsers: 0 };
      const userId = ids.get(record.number);
      if (userId === undefined) input.newUsers += 1;
      else input.userIds.push(userId);
      inputs.set(name, input);
    }
  }
  return inputs;
}

async function joinGroups(
  pass: Pass,
  { read, tx, groups }: { readonly read: Reader; readonly tx: Tx | null; readonly groups: GroupsByName },
  inputs: ReturnType<typeof inputsOf>,
): Promise<void> {
  const { services, orgId, tally } = pass;
  for (const [name, { userIds, newUsers }] of inputs) {
    const group = groups.get(name);
    if (!group || group.type === 'everyone') continue;
    const input = { orgId, groupId: group.id, userIds, origin: operator };
    tally.join(tx ? await joinImportedGroup(tx, services, input) : await findJoining(read, input));
    tally.memberships += newUsers;
  }
}

/** Imports the users of a file. @param groups those that the file names */
export async function passUsers(pass: Pass, groups: GroupsByName): Promise<void> {
  const { staging, orgId, nowMs } = pass;
  for (const batch of staging.rows('users', atOnce)) {
    const known = batch.filter((record) => {
      if (unknownGroup(record, groups) === null) return true;
      staging.reject('users', record, { field: 'groups', message: 'names a group that is not here' });
      return false;
    });
    if (known.length > 0) {
      const planned = await step(pass, async (read, tx) => {
        const users = usersOf(pass, known);
        const plans = await planUsers(read, { orgId, users, nowMs });
        const all = known.flatMap((record, place): readonly Planned[] => {
          const [user, plan] = [users[place], plans[place]];
          return user && plan ? [{ record, user, plan }] : [];
        });
        const added = tx ? await write(pass, tx, all) : new Map<number, string>();
        await joinGroups(pass, { read, tx, groups }, inputsOf(all, new Map([...presentIds(all), ...added])));
        return all;
      });
      for (const one of planned) count(pass, one);
    }
    pass.advance(batch.length);
  }
}
