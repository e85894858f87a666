import { setImmediate } from 'node:timers/promises';
import type { Principal } from '../../access/principal.ts';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { changesBetween } from '../../audit-log/changes.ts';
import { selectLocalAddresses } from '../../audit-log/local-addresses.ts';
import { ApiError } from '../../base/errors.ts';
import type { Origin } from '../../base/origin.ts';
import { batchRows } from '../../db/batches.ts';
import { nextSlug, takeNumbers } from '../../db/counters.ts';
import type { Reader, Tx } from '../../db/database.ts';
import { appendEvents } from '../../outbox/outbox.ts';
import { updatedPayload } from '../../outbox/updated-user.ts';
import type { Services } from '../../services.ts';
import { forgetCodes } from '../codes/public.ts';
import { isInDefaultGroup, joinDefaultGroup, joinDefaultGroupTogether, leaveAllGroups } from '../groups/public.ts';
import { forgetIdentities } from '../identities/public.ts';
import { endLinks } from '../links/public.ts';
import { setPassword } from '../passwords/public.ts';
import { endCredentials } from '../sessions/public.ts';
import { leaveAllTeams } from '../teams/public.ts';
import { revokeTokensOf } from '../tokens/public.ts';
import { type ImportedUser, importedUserRow, planAll, type UserPlan } from './imported-user.ts';
import { auditedUser, deletedUser, newUserRow, restoredUser, type StoredUser } from './user.ts';
import { insertUsers, selectAnyUsersByIds, selectOwnersOfEmails, selectUserById, updateUser } from './user-store.ts';

/** Services that are needed to write with an audit record. */
type WritingServices = Pick<Services, 'clock' | 'newId'> & {
  readonly metrics: Pick<Services['metrics'], 'countActivity'>;
};

interface NewUser {
  readonly orgId: string;
  readonly email: string;
  readonly fullName: string;
  readonly mobile?: string | null;
  readonly designation?: string | null;
}

/**
 * Adds a user: the row, membership of `everyone`, the event. The address must be free. Rule: USER-5.
 * @param syncAction action for consumers of the event: `none` for the first administrator
 */
export async function addUser(
  tx: Tx,
  services: Pick<Services, 'clock' | 'newId'>,
  { syncAction, ...newUser }: NewUser & { readonly syncAction: 'none' | 'immediate' },
): Promise<StoredUser> {
  const { orgId } = newUser;
  const user = newUserRow({ ...newUser, id: services.newId(), slug: await nextSlug(tx, 'user') }, services.clock.now());
  await insertNewUsers(tx, services, { orgId, users: [user], syncAction });
  return user;
}

/**
 * Inserts new users, adds them to `everyone` in as few statements as possible, and writes events for the active ones.
 */
async function insertNewUsers(
  tx: Tx,
  services: Pick<Services, 'clock' | 'newId'>,
  input: {
    readonly orgId: string;
    readonly users: readonly StoredUser[];
    readonly syncAction: 'none' | 'immediate';
  },
): Promise<void> {
  const { orgId, users, syncAction } = input;
  for (let start = 0; start < users.length; start += batchRows) {
    // There may be thousands: readers get their turn.
    if (start > 0) await setImmediate();
    const some = users.slice(start, start + batchRows);
    await insertUsers(tx, some);
    const active = some.filter((user) => user.is_deleted === 0);
    const userIds = active.map(({ id }) => id);
    if (active.length > 0) await joinDefaultGroupTogether(tx, { orgId, userIds, type: 'everyone' });
    const events = active.map(({ id: userId, email, full_name: fullName }) => ({
      eventType: 'userAdded' as const,
      payload: { orgId, userId, email, fullName, syncAction },
    }));
    if (active.length > 0) await appendEvents(tx, services, events);
  }
}

/**
 * Adds many users at once, each as `addUser` does; the addresses must be free.
 * @param newcomer makes a user from the number in the slug, which is unique, and the index among them
 * @returns the ids, in order of the numbers
 */
export async function addUsers(
  tx: Tx,
  services: Pick<Services, 'clock' | 'newId'>,
  input: {
    readonly orgId: string;
    readonly count: number;
    readonly newUser: (number: number, place: number) => Omit<NewUser, 'orgId'>;
  },
): Promise<string[]> {
  const { orgId, count, newUser } = input;
  const first = await takeNumbers(tx, 'user', count);
  const nowMs = services.clock.now();
  const users = Array.from({ length: count }, (_, place) => {
    const number = first + place;
    return newUserRow({ ...newUser(number, place), orgId, id: services.newId(), slug: `user-${number}` }, nowMs);
  });
  await insertNewUsers(tx, services, { orgId, users, syncAction: 'immediate' });
  return users.map(({ id }) => id);
}

/**
 * Restores a deleted user: in `everyone` again, with an event as for a new user, without any earlier credential. Throws
 * `notFound` for an erased user, of whom nothing is left, and `administratorBySession` for a token that would restore
 * an administrator. Rules: AUDIT-14, LEAVER-1, USER-39, USER-40.
 */
export async function restoreDeletedUser(
  tx: Tx,
  services: Services,
  { deleted, by, origin }: { readonly deleted: StoredUser; readonly by: Principal; readonly origin: Origin },
): Promise<{ readonly user: StoredUser; readonly revokedTokens: number }> {
  if (deleted.erased_at !== null) throw new ApiError('notFound');
  const { id: userId, org_id: orgId, email, full_name: fullName } = deleted;
  const nowMs = services.clock.now();
  const isInAdmin = by.kind === 'token' && (await isInDefaultGroup(tx, { orgId, userId, type: 'admin' }));
  if (isInAdmin) throw new ApiError('administratorBySession');
  const user = restoredUser(deleted, nowMs);
  await updateUser(tx, user);
  await joinDefaultGroup(tx, { orgId, userId, type: 'everyone' });
  await endCredentials(tx, { userId, nowMs });
  await forgetIdentities(tx, userId);
  const end = { owner: { userId }, orgId, by, reason: 'Owner was deleted', origin };
  const revokedTokens = await revokeTokensOf(tx, services, end);
  await appendEvents(tx, services, [
    { eventType: 'userAdded', payload: { orgId, userId, email, fullName, syncAction: 'immediate' } },
  ]);
  return { user, revokedTokens };
}

/**
 * Deletes a user, who can be restored: the user's credentials and tokens stop working. Throws
 * `administratorNotDeletable` for a member of the admin group. Rules: USER-34 to USER-36.
 */
export async function removeUser(
  tx: Tx,
  services: Services,
  { user, by, origin }: { readonly user: StoredUser; readonly by: Principal; readonly origin: Origin },
): Promise<void> {
  const { id: userId, org_id: orgId, email } = user;
  if (await isInDefaultGroup(tx, { orgId, userId, type: 'admin' })) throw new ApiError('administratorNotDeletable');
  const nowMs = services.clock.now();
  await updateUser(tx, deletedUser(user, by.userId, nowMs));
  await leaveAllGroups(tx, userId);
  await leaveAllTeams(tx, services, { userId, orgId, actor: by, origin });
  await endCredentials(tx, { userId, nowMs });
  await appendEvents(tx, services, [{ eventType: 'userDeleted', payload: { orgId, userId, email } }]);
}

/** Returns an active user of an organization with all columns; throws `notFound` for any other id. */
export async function requireUser(read: Reader, orgId: string, id: string): Promise<StoredUser> {
  const user = await selectUserById(read, id);
  if (user?.org_id !== orgId) throw new ApiError('notFound');
  return user;
}

/** Returns the users who have one of some addresses, deleted or not, or get recovery mail there. */
export function findOwnersOfEmails(read: Reader, orgId: string, emails: readonly string[]): Promise<StoredUser[]> {
  return selectOwnersOfEmails(read, orgId, emails);
}

/**
 * Writes a changed user: with another address the user loses the links and codes that went to the earlier one;
 * consumers get the full current set. Rules: USER-27, USER-43.
 * @param by the user who makes the change; `null`: the operator
 */
export async function changeUser(
  tx: Tx,
  services: WritingServices,
  change: {
    readonly before: StoredUser;
    readonly after: StoredUser;
    readonly by: Principal | null;
    readonly origin: Origin;
    readonly details: Readonly<Record<string, unknown>>;
  },
): Promise<void> {
  const { before, after, by, origin, details } = change;
  const { id: userId, org_id: orgId } = after;
  await updateUser(tx, after);
  if (after.email !== before.email) {
    await endLinks(tx, { userId, nowMs: services.clock.now(), reason: 'email-changed' });
    await forgetCodes(tx, userId);
  }
  await appendEvents(tx, services, [{ eventType: 'userUpdated', payload: updatedPayload(after) }]);
  const changes = changesBetween(auditedUser(before), auditedUser(after));
  const record = { action: 'user.updated', orgId, actor: by, subjectId: userId, origin } as const;
  await appendAudit(tx, services, { ...record, details, changes });
}

/** Plans the import of users, in their order; no two of them share an id or an address. Rules: CLI-16, CLI-17. */
export async function planUsers(
  read: Reader,
  { orgId, users, nowMs }: { readonly orgId: string; readonly users: readonly ImportedUser[]; readonly nowMs: number },
): Promise<readonly UserPlan[]> {
  const ids = users.flatMap(({ id }) => id ?? []);
  const emails = users.map(({ email }) => email);
  const present = await selectAnyUsersByIds(read, ids);
  const ownAddresses = await selectLocalAddresses(
    read,
    present.map(({ id }) => id),
  );
  return planAll(users, { present, ownAddresses, having: await selectOwnersOfEmails(read, orgId, emails), nowMs });
}

/**
 * Adds imported users; ids and addresses must be free. Active ones are added to `everyone` and get an event. Rules:
 * CLI-17, CLI-19.
 * @returns the ids, in their order
 */
export async function addImportedUsers(
  tx: Tx,
  services: WritingServices,
  input: {
    readonly orgId: string;
    readonly users: readonly ImportedUser[];
    readonly origin: Origin;
    readonly syncAction: 'none' | 'immediate';
  },
): Promise<readonly string[]> {
  const { orgId, users, origin, syncAction } = input;
  const nowMs = services.clock.now();
  const first = await takeNumbers(tx, 'user', users.length);
  const rows = users.map((user, place) => {
    const made = { id: user.id ?? services.newId(), orgId, slug: `user-${first + place}`, nowMs };
    return importedUserRow(user, made);
  });
  await insertNewUsers(tx, services, { orgId, users: rows, syncAction });
  const act = { action: 'user.created', orgId, actor: null, origin, details: { imported: true } } as const;
  const records = rows.map((user) => ({
    ...act,
    subjectId: user.id,
    changes: changesBetween(null, auditedUser(user)),
  }));
  await appendAudit(tx, services, ...records);
  for (const [place, { passwordHash, isDeleted }] of users.entries()) {
    const userId = rows[place]?.id;
    if (passwordHash && !isDeleted && userId) await setPassword(tx, { userId, passwordHash, nowMs });
  }
  return rows.map(({ id }) => id);
}
