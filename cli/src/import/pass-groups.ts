import type { Reader, Tx } from '../../../server/src/db/database.ts';
import { selectKnownUsers } from '../../../server/src/db/members/users.ts';
import {
  addImportedGroup,
  findJoining,
  joinImportedGroup,
  planImportedGroup,
} from '../../../server/src/features/groups/public.ts';
import { foldCase } from '../../../server/src/text/plain-text.ts';
import { operator } from '../operator-store.ts';
import { atOnce, type Pass, step } from './pass.ts';
import type { Tally } from './report.ts';
import type { ImportedGroup, Staged } from './staging.ts';

type Plan = Awaited<ReturnType<typeof planImportedGroup>>;

function* chunks(ids: readonly string[]): Generator<readonly string[]> {
  for (let start = 0; start < ids.length; start += atOnce) yield ids.slice(start, start + atOnce);
}

/**
 * Returns those ids that come with the file as active users and do not exist yet, and those that are unknown
 * everywhere.
 */
async function newAmong({ services, staging }: Pass, userIds: readonly string[]) {
  const here = new Set((await selectKnownUsers(services.db.read, userIds)).map(({ id }) => id));
  const absent = userIds.filter((id) => !here.has(id));
  const coming = staging.withIds('users', absent);
  const known = new Set(coming.map(({ id }) => id));
  return {
    newUsers: coming.filter(({ content }) => !content.user.isDeleted).length,
    unknown: absent.filter((id) => !known.has(id)),
  };
}

/** Counts the members that a group does not have yet; reports an unknown one and returns `false`. */
async function checkMembers(pass: Pass, record: Staged<'groups'>, groupId: string): Promise<boolean> {
  const joins: Parameters<Tally['join']>[0][] = [];
  for (const userIds of chunks(record.content.userIds)) {
    const { newUsers, unknown } = await newAmong(pass, userIds);
    if (unknown.length > 0) {
      const message = `names ${unknown.length} users who are neither in the file nor here, such as ${unknown[0]}`;
      pass.staging.reject('groups', record, { field: 'users', message });
      return false;
    }
    joins.push(await findJoining(pass.services.db.read, { orgId: pass.orgId, groupId, userIds }));
    joins.push({ joining: Array.from({ length: newUsers }), takenOut: 0 });
  }
  for (const one of joins) pass.tally.join(one);
  return true;
}

/** Puts the members into a group, in as many transactions as it takes. */
async function writeMembers(pass: Pass, record: Staged<'groups'>, groupId: string): Promise<boolean> {
  const { services, orgId, tally } = pass;
  for (const userIds of chunks(record.content.userIds)) {
    const input = { orgId, groupId, userIds, origin: operator };
    const joined = await step(pass, async (_, tx) => (tx ? joinImportedGroup(tx, services, input) : null));
    if (joined) tally.join(joined);
  }
  return true;
}

/** The group as it is here; one that is new is made. */
async function groupOf(
  { services, orgId }: Pass,
  { content: { group } }: Staged<'groups'>,
  { read, tx }: { readonly read: Reader; readonly tx: Tx | null },
): Promise<{ readonly plan: Plan; readonly groupId: string }> {
  const plan = await planImportedGroup(read, orgId, group);
  if (plan.what === 'same') return { plan, groupId: plan.groupId };
  const isMade = plan.what === 'add' && tx !== null;
  return { plan, groupId: isMade ? await addImportedGroup(tx, services, { orgId, group, origin: operator }) : '' };
}

/** Returns whether it is created with the organization. */
export function comesWithOrganization({ type, name }: ImportedGroup): boolean {
  return type === 'admin' || type === 'everyone' || (type === 'standard' && foldCase(name) === 'standard');
}

async function passGroup(pass: Pass, record: Staged<'groups'>): Promise<void> {
  const { tally, staging, isWriting } = pass;
  const { plan, groupId } = await step(pass, (read, tx) => groupOf(pass, record, { read, tx }));
  if (plan.what === 'refuse') staging.reject('groups', record, plan);
  if (plan.what === 'leave') tally.skip('groups', plan.reason);
  if (plan.what === 'refuse' || plan.what === 'leave') return;
  // All users are in `everyone` anyway.
  const isFull = record.content.group.type === 'everyone';
  if (!isFull && !(await (isWriting ? writeMembers : checkMembers)(pass, record, groupId))) return;
  const isNew = plan.what === 'add' && !comesWithOrganization(record.content.group);
  tally.count('groups', isNew ? 'created' : 'unchanged');
}

/** Goes through the groups of a dump. Rule: CLI-17. */
export async function passGroups(pass: Pass): Promise<void> {
  for (const batch of pass.staging.rows('groups', atOnce)) {
    for (const record of batch) {
      await passGroup(pass, record);
      pass.advance(1);
    }
  }
}
