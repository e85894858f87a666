import type { Reader, Tx } from '../../db/database.ts';

/** An active user with the address as it is, and the last verified one. */
export function selectAddress(read: Reader, userId: string) {
  return read
    .selectFrom('users')
    .where('id', '=', userId)
    .where('is_deleted', '=', 0)
    .select(['id', 'org_id as orgId', 'full_name as fullName', 'email', 'recovery_email as lastVerified'])
    .select('email_is_own as isOwn')
    .executeTakeFirst();
}

/**
 * The users, deleted or not, who hold one of some addresses unverified, and the deleted ones whose last verified address
 * is one of them: all of them are to get their last verified address back when those addresses are proved.
 */
export function selectUnverifiedOwners(
  read: Reader,
  {
    orgId,
    emails,
    exceptId,
  }: { readonly orgId: string; readonly emails: readonly string[]; readonly exceptId: string },
) {
  return (
    read
      .selectFrom('users')
      .where('id', '!=', exceptId)
      .where('recovery_email', 'is not', null)
      // The organization in each half: only then each is looked up in an index of its own.
      .where((eb) =>
        eb.or([
          eb('org_id', '=', orgId).and('email', 'in', emails),
          eb('org_id', '=', orgId).and('recovery_email', 'in', emails).and('is_deleted', '=', 1),
        ]),
      )
      .selectAll()
      .execute()
  );
}

/** All of a user, for an event. */
export function selectUser(read: Reader, userId: string) {
  return read.selectFrom('users').where('id', '=', userId).selectAll().executeTakeFirstOrThrow();
}

/** Puts the last verified address of a user back in place. */
export async function updateToLastVerified(tx: Tx, userId: string, nowMs: number): Promise<void> {
  await tx
    .updateTable('users')
    .set((eb) => ({ email: eb.fn.coalesce('recovery_email', 'email'), recovery_email: null, updated_at: nowMs }))
    .where('id', '=', userId)
    .execute();
}

/** An active user. */
export function selectOwner(read: Reader, userId: string) {
  return read
    .selectFrom('users')
    .where('id', '=', userId)
    .where('is_deleted', '=', 0)
    .selectAll()
    .executeTakeFirstOrThrow();
}

/** Whether another user, deleted or not, has an address, or gets mail about the account there. */
export async function selectIsTaken(
  read: Reader,
  { orgId, email, forId }: { readonly orgId: string; readonly email: string; readonly forId: string },
): Promise<boolean> {
  const holder = await read
    .selectFrom('users')
    .where('id', '!=', forId)
    // The organization in each half: only then each is looked up in an index of its own.
    .where((eb) => eb.or([eb.and({ org_id: orgId, email }), eb.and({ org_id: orgId, recovery_email: email })]))
    .select('id')
    .executeTakeFirst();
  return holder !== undefined;
}

/** Whether another active user holds an address unverified. */
export async function selectIsHeldUnverified(
  read: Reader,
  { orgId, email, forId }: { readonly orgId: string; readonly email: string; readonly forId: string },
): Promise<boolean> {
  const holder = await read
    .selectFrom('users')
    .where('org_id', '=', orgId)
    .where('email', '=', email)
    .where('id', '!=', forId)
    .where('recovery_email', 'is not', null)
    .select('id')
    .executeTakeFirst();
  return holder !== undefined;
}

/** Gives a user another address, which is verified: the person who opened the link there had the password of the account, too. */
export async function updateMoved(
  tx: Tx,
  { userId, email, nowMs }: { readonly userId: string; readonly email: string; readonly nowMs: number },
): Promise<void> {
  await tx
    .updateTable('users')
    .set({ email, recovery_email: null, email_verified_at: nowMs, email_is_own: 0, updated_at: nowMs })
    .where('id', '=', userId)
    .execute();
}

/** Makes the address of a user the verified one; `isOwn`: the user chose it, and nothing but its link says so. */
export async function updateVerified(
  tx: Tx,
  userId: string,
  { nowMs, isOwn }: { readonly nowMs: number; readonly isOwn: boolean },
): Promise<void> {
  await tx
    .updateTable('users')
    .set({ recovery_email: null, email_verified_at: nowMs, email_is_own: isOwn ? 1 : 0, updated_at: nowMs })
    .where('id', '=', userId)
    .execute();
}
