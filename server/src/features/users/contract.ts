import { setImmediate } from 'node:timers/promises';
import type { Principal } from '../../access/principal.ts';
import { batchRows } from '../../db/batches.ts';
import { nextSlug, takeNumbers } from '../../db/counters.ts';
import type { Reader, Tx } from '../../db/database.ts';
import { RefusedError } from '../../errors.ts';
import { appendEvents } from '../../events/outbox.ts';
import type { Origin } from '../../origin.ts';
import type { Services } from '../../services.ts';
import { isInDefaultGroup, joinDefaultGroup, joinDefaultGroupTogether, leaveAllGroups } from '../groups/contract.ts';
import { endCredentials } from '../sessions/contract.ts';
import { leaveAllTeams } from '../teams/contract.ts';
import { revokeTokensOf } from '../tokens/contract.ts';
import { deletedUser, newUserRow, restoredUser, type StoredUser } from './user.ts';
import { insertUser, insertUsers, selectHoldersOfEmails, selectUserById, updateUser } from './user-store.ts';

interface Newcomer {
  readonly orgId: string;
  readonly email: string;
  readonly fullName: string;
  readonly mobile?: string | null;
  readonly designation?: string | null;
}

/**
 * Adds a person: the row, membership of `everyone`, the event. The address must be free. Rule: USER-5.
 * @param syncAction what consumers of the event are to do: `none` for the first administrator
 */
export async function addPerson(
  tx: Tx,
  services: Pick<Services, 'clock' | 'newId'>,
  { syncAction, ...newcomer }: Newcomer & { readonly syncAction: 'none' | 'immediate' },
): Promise<StoredUser> {
  const { orgId, email, fullName } = newcomer;
  const id = services.newId();
  const user = newUserRow({ ...newcomer, id, slug: await nextSlug(tx, 'user') }, services.clock.now());
  await insertUser(tx, user);
  await joinDefaultGroup(tx, { orgId, userId: id, type: 'everyone' });
  await appendEvents(tx, services, [
    { eventType: 'userAdded', payload: { orgId, userId: id, email, fullName, syncAction } },
  ]);
  return user;
}

/**
 * Adds many people at once, each as `addPerson` does; the addresses must be free.
 * @param newcomer makes a person of the number in the slug, which nobody else has, and of its place among them
 * @returns the ids, in order of the numbers
 */
export async function addPeople(
  tx: Tx,
  services: Pick<Services, 'clock' | 'newId'>,
  wish: {
    readonly orgId: string;
    readonly count: number;
    readonly newcomer: (number: number, place: number) => Omit<Newcomer, 'orgId'>;
  },
): Promise<string[]> {
  const { orgId, count, newcomer } = wish;
  const first = await takeNumbers(tx, 'user', count);
  const nowMs = services.clock.now();
  const users = Array.from({ length: count }, (_, place) => {
    const number = first + place;
    return newUserRow({ ...newcomer(number, place), orgId, id: services.newId(), slug: `user-${number}` }, nowMs);
  });
  for (let start = 0; start < count; start += batchRows) {
    const some = users.slice(start, start + batchRows);
    const ids = some.map(({ id }) => id);
    await insertUsers(tx, some);
    await joinDefaultGroupTogether(tx, { orgId, userIds: ids, type: 'everyone' });
    const events = some.map(({ id: userId, email, full_name: fullName }) => ({
      eventType: 'userAdded' as const,
      payload: { orgId, userId, email, fullName, syncAction: 'immediate' as const },
    }));
    await appendEvents(tx, services, events);
    // There may be a thousand: readers get their turn.
    await setImmediate();
  }
  return users.map(({ id }) => id);
}

/**
 * Brings a deleted person back: into `everyone` again, told of like somebody new, without any credential of before. Throws
 * `notFound` for whoever was erased: there is nothing left to bring back. Rules: AUDIT-14, USER-39, USER-40.
 */
export async function restorePerson(
  tx: Tx,
  services: Services,
  { deleted, by, origin }: { readonly deleted: StoredUser; readonly by: Principal; readonly origin: Origin },
): Promise<{ readonly user: StoredUser; readonly revokedTokens: number }> {
  if (deleted.erased_at !== null) throw new RefusedError('notFound');
  const { id: userId, org_id: orgId, email, full_name: fullName } = deleted;
  const nowMs = services.clock.now();
  const user = restoredUser(deleted, nowMs);
  await updateUser(tx, user);
  await joinDefaultGroup(tx, { orgId, userId, type: 'everyone' });
  await endCredentials(tx, { userId, nowMs });
  const end = { owner: { userId }, orgId, by, reason: 'Owner was deleted', origin };
  const revokedTokens = await revokeTokensOf(tx, services, end);
  await appendEvents(tx, services, [
    { eventType: 'userAdded', payload: { orgId, userId, email, fullName, syncAction: 'immediate' } },
  ]);
  return { user, revokedTokens };
}

/**
 * Deletes a person, who can be restored: nothing that the person signed in or made tokens with works any more. Throws
 * `administratorNotDeletable` for a member of the admin group. Rules: USER-34 to USER-36.
 */
export async function removePerson(
  tx: Tx,
  services: Services,
  { user, by, origin }: { readonly user: StoredUser; readonly by: Principal; readonly origin: Origin },
): Promise<void> {
  const { id: userId, org_id: orgId, email } = user;
  if (await isInDefaultGroup(tx, { orgId, userId, type: 'admin' })) throw new RefusedError('administratorNotDeletable');
  const nowMs = services.clock.now();
  await updateUser(tx, deletedUser(user, by.userId, nowMs));
  await leaveAllGroups(tx, userId);
  await leaveAllTeams(tx, services, { userId, orgId, actor: by, origin });
  await endCredentials(tx, { userId, nowMs });
  await appendEvents(tx, services, [{ eventType: 'userDeleted', payload: { orgId, userId, email } }]);
}

/** An active person of an organization, whole; throws `notFound` for anybody else. */
export async function requirePerson(read: Reader, orgId: string, id: string): Promise<StoredUser> {
  const user = await selectUserById(read, id);
  if (user?.org_id !== orgId) throw new RefusedError('notFound');
  return user;
}

/** Whoever has one of some addresses, deleted or not, or gets recovery mail there. */
export function findHoldersOfEmails(read: Reader, orgId: string, emails: readonly string[]): Promise<StoredUser[]> {
  return selectHoldersOfEmails(read, orgId, emails);
}
