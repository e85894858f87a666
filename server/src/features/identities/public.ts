import { hashCredential, type Secret } from '../../base/secret.ts';
import type { Reader, Tx } from '../../db/database.ts';
import type { OidcIdentity } from '../../oidc/oidc.ts';
import type { AllServices, Services } from '../../services.ts';
import {
  deleteIdentities,
  deleteOldTickets,
  deleteTicket,
  deleteTicketsOf,
  insertTicket,
  selectHasIdentity,
  selectIdentityOwner,
  selectOwnerOfAddress,
  selectTicket,
  upsertIdentity,
} from './identity-store.ts';
import { createRawTicket, ticketMs } from './ticket.ts';

type Known = Pick<OidcIdentity, 'issuer' | 'subject'>;

/**
 * Finds the user whom a provider vouches for: the one who was linked before, or else the one who has the proved address.
 * `null`: no user yet; `taken`: the provider has given the address to another person; `gone`: it is a
 * deleted user, for whom no administrator has made another account. Rules: AUTH-55, AUTH-72.
 */
export async function findOwner(
  tx: Tx,
  { identity, orgId, email }: { readonly identity: Known; readonly orgId: string; readonly email: string },
): Promise<{ readonly userId: string; readonly isLinked: boolean } | 'taken' | 'gone' | null> {
  const linked = await selectIdentityOwner(tx, identity);
  if (linked?.isDeleted === 0) return { userId: linked.userId, isLinked: true };
  const userId = await selectOwnerOfAddress(tx, orgId, email);
  if (userId === null) return linked ? 'gone' : null;
  return (await selectHasIdentity(tx, userId, identity.issuer)) ? 'taken' : { userId, isLinked: false };
}

/** Stores the identity of a user at a provider. */
export async function linkIdentity(
  tx: Tx,
  { clock }: Pick<Services, 'clock'>,
  { identity: { issuer, subject }, userId }: { readonly identity: Known; readonly userId: string },
): Promise<void> {
  await upsertIdentity(tx, { issuer, subject, user_id: userId, created_at: clock.now() });
}

/** Forgets the tickets with which a user came back from the provider: what they prove counts no longer. Rule: SESSION-14. */
export async function forgetTickets(tx: Tx, userId: string): Promise<void> {
  await deleteTicketsOf(tx, userId);
}

/** Deletes the links of a user to providers: a user who is restored is linked anew. */
export async function forgetIdentities(tx: Tx, userId: string): Promise<void> {
  await deleteIdentities(tx, userId);
}

/** Use of a ticket: one user, and the sign-in that it was fetched for. */
interface TicketUse {
  readonly userId: string;
  readonly signInId: string;
}

/** Issues a ticket for a user who came back from the provider. Rule: AUTH-56. */
export async function issueTicket(
  tx: Tx,
  { clock }: Pick<Services, 'clock'>,
  { userId, signInId }: TicketUse,
): Promise<Secret> {
  const ticket = createRawTicket();
  const hash = hashCredential(ticket.expose());
  await insertTicket(tx, { hash, user_id: userId, sign_in_id: signInId, expires_at: clock.now() + ticketMs });
  return ticket;
}

type ShownTicket = TicketUse & { readonly ticket: string };

async function isGood(read: Reader, { clock }: Pick<Services, 'clock'>, shown: ShownTicket): Promise<boolean> {
  const known = await selectTicket(read, hashCredential(shown.ticket), clock.now());
  return known?.userId === shown.userId && known.signInId === shown.signInId;
}

/** Returns whether a ticket belongs to this user and this sign-in. It is not used up here. */
export function isTicketOf(services: Pick<Services, 'db' | 'clock'>, shown: ShownTicket): Promise<boolean> {
  return isGood(services.db.read, services, shown);
}

/** Consumes a ticket, in the transaction that it authorizes; returns whether it was still valid. */
export async function useUpTicket(tx: Tx, services: Pick<Services, 'clock'>, shown: ShownTicket): Promise<boolean> {
  return (await isGood(tx, services, shown)) && deleteTicket(tx, hashCredential(shown.ticket));
}

/** Removes unused tickets; returns their number. */
export function pruneTickets({ db, clock }: Pick<AllServices, 'db' | 'clock'>): Promise<number> {
  return db.transaction((tx) => deleteOldTickets(tx, clock.now()));
}
