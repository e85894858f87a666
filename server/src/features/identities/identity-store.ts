import type { CredentialHash } from '../../base/secret.ts';
import type { Reader, Tx } from '../../db/database.ts';
import { isAdministrator } from '../../db/members/membership.ts';
import type { NewRow } from '../../db/schema/tables.ts';

/** Selects the user whom a provider knows by this subject, deleted or not, unlinked or not. */
export function selectIdentityOwner(
  read: Reader,
  { issuer, subject }: { readonly issuer: string; readonly subject: string },
) {
  return read
    .selectFrom('external_identities as i')
    .innerJoin('users as u', 'u.id', 'i.user_id')
    .where('i.issuer', '=', issuer)
    .where('i.subject', '=', subject)
    .select(['u.id as userId', 'u.is_deleted as isDeleted', 'i.unlinked_at as unlinkedAt'])
    .executeTakeFirst();
}

/** Returns whether a user has an identity at a provider. */
export async function selectHasIdentity(read: Reader, userId: string, issuer: string): Promise<boolean> {
  const row = await read
    .selectFrom('external_identities')
    .where('user_id', '=', userId)
    .where('issuer', '=', issuer)
    .where('unlinked_at', 'is', null)
    .select('subject')
    .executeTakeFirst();
  return row !== undefined;
}

/** Links a user to a subject of a provider, in place of the deleted or unlinked user whom it knew by that subject. */
export async function upsertIdentity(tx: Tx, row: NewRow<'external_identities'>): Promise<void> {
  const { user_id, created_at } = row;
  const values = { user_id, created_at, signed_in_at: null, unlinked_at: null };
  await tx
    .insertInto('external_identities')
    .values(row)
    .onConflict((oc) => oc.columns(['issuer', 'subject']).doUpdateSet(values))
    .execute();
}

/** Marks the links of a user as forgotten; returns the issuers of those that this ended. */
export async function updateUnlinked(tx: Tx, userId: string, nowMs: number): Promise<string[]> {
  const rows = await tx
    .updateTable('external_identities')
    .set({ unlinked_at: nowMs })
    .where('user_id', '=', userId)
    .where('unlinked_at', 'is', null)
    .returning('issuer')
    .execute();
  return rows.map(({ issuer }) => issuer);
}

/** Notes that a user signed in by an identity. */
export async function updateSignedIn(
  tx: Tx,
  { issuer, subject, userId }: { readonly issuer: string; readonly subject: string; readonly userId: string },
  nowMs: number,
): Promise<void> {
  await tx
    .updateTable('external_identities')
    .set({ signed_in_at: nowMs })
    .where('issuer', '=', issuer)
    .where('subject', '=', subject)
    .where('user_id', '=', userId)
    .execute();
}

/** The issuers that active administrators signed in by, each with the time of the last sign-in. */
export function selectAdministratorSignIns(read: Reader, orgId: string, exceptId: string) {
  return read
    .selectFrom('external_identities as i')
    .innerJoin('users as u', 'u.id', 'i.user_id')
    .where('u.org_id', '=', orgId)
    .where('u.id', '<>', exceptId)
    .where('u.is_deleted', '=', 0)
    .where('i.unlinked_at', 'is', null)
    .where('i.signed_in_at', 'is not', null)
    .where(isAdministrator('i.user_id'), '=', 1)
    .groupBy('i.issuer')
    .select('i.issuer')
    .select((eb) => eb.fn.max('i.signed_in_at').as('signedInAt'))
    .execute();
}

/** Deletes the links of a user to providers, and what is kept of earlier ones. */
export async function deleteIdentities(tx: Tx, userId: string): Promise<void> {
  await tx.deleteFrom('external_identities').where('user_id', '=', userId).execute();
}

/** Forgets the tickets of a user. */
export async function deleteTicketsOf(tx: Tx, userId: string): Promise<void> {
  await tx.deleteFrom('sign_in_tickets').where('user_id', '=', userId).execute();
}

/** Stores when all sessions of a user ended. */
export async function upsertSignInEnd(tx: Tx, row: NewRow<'sign_in_ends'>): Promise<void> {
  const { ended_at } = row;
  await tx
    .insertInto('sign_in_ends')
    .values(row)
    .onConflict((oc) => oc.column('user_id').doUpdateSet({ ended_at }))
    .execute();
}

/** Returns when all sessions of a user ended last, as far as that is kept. */
export function selectSignInEnd(read: Reader, userId: string) {
  return read.selectFrom('sign_in_ends').where('user_id', '=', userId).select('ended_at as endedAt').executeTakeFirst();
}

/** Removes what is no longer asked for. */
export async function deleteOldSignInEnds(tx: Tx, untilMs: number): Promise<void> {
  await tx.deleteFrom('sign_in_ends').where('ended_at', '<=', untilMs).execute();
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
    .select(['user_id as userId', 'sign_in_id as signInId', 'issuer', 'subject'])
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
