import type { CredentialHash } from '../../base/secret.ts';
import type { Reader, Tx } from '../../db/database.ts';
import type { NewRow } from '../../db/schema/tables.ts';

/** Selects the user whom a provider knows by this subject, deleted or not. */
export function selectIdentityOwner(
  read: Reader,
  { issuer, subject }: { readonly issuer: string; readonly subject: string },
) {
  return read
    .selectFrom('external_identities as i')
    .innerJoin('users as u', 'u.id', 'i.user_id')
    .where('i.issuer', '=', issuer)
    .where('i.subject', '=', subject)
    .select(['u.id as userId', 'u.is_deleted as isDeleted'])
    .executeTakeFirst();
}

/** Returns whether a user has an identity at a provider. */
export async function selectHasIdentity(read: Reader, userId: string, issuer: string): Promise<boolean> {
  const row = await read
    .selectFrom('external_identities')
    .where('user_id', '=', userId)
    .where('issuer', '=', issuer)
    .select('subject')
    .executeTakeFirst();
  return row !== undefined;
}

/** Links a user to a subject of a provider, in place of the deleted user whom it knew by that subject. */
export async function upsertIdentity(tx: Tx, row: NewRow<'external_identities'>): Promise<void> {
  const { user_id, created_at } = row;
  await tx
    .insertInto('external_identities')
    .values(row)
    .onConflict((oc) => oc.columns(['issuer', 'subject']).doUpdateSet({ user_id, created_at }))
    .execute();
}

/** Deletes the links of a user to providers. */
export async function deleteIdentities(tx: Tx, userId: string): Promise<void> {
  await tx.deleteFrom('external_identities').where('user_id', '=', userId).execute();
}

/** Forgets the tickets of a user. */
export async function deleteTicketsOf(tx: Tx, userId: string): Promise<void> {
  await tx.deleteFrom('sign_in_tickets').where('user_id', '=', userId).execute();
}

/** Adds a ticket. */
export async function insertTicket(tx: Tx, row: NewRow<'sign_in_tickets'>): Promise<void> {
  await tx.insertInto('sign_in_tickets').values(row).execute();
}

/** Returns owner and sign-in of a ticket that is not expired; `undefined` for any other. */
export function selectTicket(read: Reader, hash: CredentialHash, nowMs: number) {
  return read
    .selectFrom('sign_in_tickets')
    .where('hash', '=', hash)
    .where('expires_at', '>', nowMs)
    .select(['user_id as userId', 'sign_in_id as signInId'])
    .executeTakeFirst();
}

/** Deletes a ticket; returns whether it existed. */
export async function deleteTicket(tx: Tx, hash: CredentialHash): Promise<boolean> {
  const { numDeletedRows } = await tx.deleteFrom('sign_in_tickets').where('hash', '=', hash).executeTakeFirst();
  return numDeletedRows === 1n;
}

/** Removes expired tickets; returns their number. */
export async function deleteOldTickets(tx: Tx, nowMs: number): Promise<number> {
  const { numDeletedRows } = await tx.deleteFrom('sign_in_tickets').where('expires_at', '<=', nowMs).executeTakeFirst();
  return Number(numDeletedRows);
}

/**
 * Returns the active user with this proved address. An address that a token set is no proof until it is confirmed: till
 * then the previous one counts. Rule: AUTH-49.
 */
export async function selectOwnerOfAddress(read: Reader, orgId: string, email: string): Promise<string | null> {
  const row = await read
    .selectFrom('users')
    .where('is_deleted', '=', 0)
    // The organization in each half: only then each is looked up in an index of its own.
    .where((eb) =>
      eb.or([
        eb.and({ org_id: orgId, email }).and('recovery_email', 'is', null),
        eb.and({ org_id: orgId, recovery_email: email }),
      ]),
    )
    .select('id')
    .executeTakeFirst();
  return row?.id ?? null;
}
