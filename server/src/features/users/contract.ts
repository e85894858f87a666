import { unauthorized } from '../../access/bearer.ts';
import { nextSlug } from '../../db/counters.ts';
import type { Reader, Tx } from '../../db/database.ts';
import { appendEvents } from '../../events/outbox.ts';
import type { Services } from '../../services.ts';
import { joinDefaultGroup } from '../groups/contract.ts';
import { newUserRow, type StoredUser } from './user.ts';
import { insertUser, selectUserByEmail, selectUserById, updateHasLoggedIn } from './user-store.ts';

/** A user as other features see one. */
export interface Person {
  readonly id: string;
  readonly orgId: string;
  readonly email: string;
  readonly fullName: string;
}

function toPerson({ id, org_id, email, full_name }: StoredUser): Person {
  return { id, orgId: org_id, email, fullName: full_name };
}

/**
 * The person behind a credential. Throws the 401 `TOKEN_INVALID` when that person has been deleted meanwhile: to be
 * asked again inside the transaction of whatever the person makes.
 */
export async function requireActivePerson(read: Reader, userId: string): Promise<Person> {
  const user = await selectUserById(read, userId);
  if (!user) throw unauthorized.invalid();
  return toPerson(user);
}

/** The active person with this normalized address; `null` when there is none. */
export async function findActivePerson(read: Reader, orgId: string, email: string): Promise<Person | null> {
  const user = await selectUserByEmail(read, orgId, email);
  return user?.is_deleted === 0 ? toPerson(user) : null;
}

/** The first complete sign-in makes `hasLoggedIn` true. Rule: AUTH-11. */
export async function noteSignIn(tx: Tx, userId: string, nowMs: number): Promise<void> {
  await updateHasLoggedIn(tx, userId, nowMs);
}

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
  services: Services,
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
