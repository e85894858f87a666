import { hour } from '../../base/clock.ts';
import { hashCredential, type Secret } from '../../base/secret.ts';
import type { Reader, Tx } from '../../db/database.ts';
import { isSameIssuer } from '../../oidc/issuers.ts';
import type { OidcIdentity, OidcSettings } from '../../oidc/oidc.ts';
import type { AllServices, Services } from '../../services.ts';
import {
  deleteIdentities,
  deleteOldSignInEnds,
  deleteOldTickets,
  deleteTicket,
  deleteTicketsOf,
  insertTicket,
  selectAdministratorSignIns,
  selectHasIdentity,
  selectIdentityOwner,
  selectOwnerOfAddress,
  selectSignInEnd,
  selectTicket,
  updateSignedIn,
  updateUnlinked,
  upsertIdentity,
  upsertSignInEnd,
} from './identity-store.ts';
import { createRawTicket, ticketMs } from './ticket.ts';

type Known = Pick<OidcIdentity, 'issuer' | 'subject'>;

/**
 * Finds the user whom a provider vouches for: the one who was linked before, or else the one who has the proved address.
 * `null`: no user yet; `taken`: the provider has given the address to another person; `gone`: it is a
 * deleted user, for whom no administrator has made another account. Rules: AUTH-55, AUTH-72, FIT-8.
 */
export async function findOwner(
  tx: Tx,
  { identity, orgId, email }: { readonly identity: Known; readonly orgId: string; readonly email: string },
): Promise<{ readonly userId: string; readonly isLinked: boolean } | 'taken' | 'gone' | null> {
  const linked = await selectIdentityOwner(tx, identity);
  if (linked?.isDeleted === 0 && linked.unlinkedAt === null) return { userId: linked.userId, isLinked: true };
  const userId = await selectOwnerOfAddress(tx, orgId, email);
  // Unlinked or not: a user who is deleted gets no new account.
  if (userId === null) return linked?.isDeleted === 1 ? 'gone' : null;
  return (await selectHasIdentity(tx, userId, identity.issuer)) ? 'taken' : { userId, isLinked: false };
}

/** Stores the identity of a user at a provider. */
export async function linkIdentity(
  tx: Tx,
  { clock }: Pick<Services, 'clock'>,
  { identity: { issuer, subject }, userId }: { readonly identity: Known; readonly userId: string },
): Promise<void> {
  const link = { issuer, subject, user_id: userId, created_at: clock.now(), signed_in_at: null, unlinked_at: null };
  await upsertIdentity(tx, link);
}

/**
 * Forgets the links of a user to identities; returns the issuers. The subjects stay known, so that a user who is deleted
 * later gets no new account by one of them. Rule: FIT-8.
 */
export function unlinkIdentities(tx: Tx, { clock }: Pick<Services, 'clock'>, userId: string): Promise<string[]> {
  return updateUnlinked(tx, userId, clock.now());
}

/**
 * Returns whether an administrator has signed in by a provider, with its present settings. Rule: FIT-7.
 * @param exceptId a user who does not count
 */
export async function hasAdministratorSignedIn(
  read: Reader,
  orgId: string,
  {
    settings: { issuer, changedAtMs },
    exceptId = '',
  }: { readonly settings: Pick<OidcSettings, 'issuer' | 'changedAtMs'>; readonly exceptId?: string },
): Promise<boolean> {
  const signIns = await selectAdministratorSignIns(read, orgId, exceptId);
  return signIns.some(
    (one) => (one.signedInAt ?? 0) >= (changedAtMs ?? 0) && isSameIssuer(issuer, one.issuer, { ignoresSlash: true }),
  );
}

/** Longer than anyone may be at the provider. */
const endKeptMs = hour;

/**
 * Forgets the tickets with which a user came back from the provider, and stores that a visit there which began before
 * this time brings no proof back. Rules: AUTH-74, SESSION-14.
 */
export async function endVisits(
  tx: Tx,
  { userId, nowMs }: { readonly userId: string; readonly nowMs: number },
): Promise<void> {
  await deleteTicketsOf(tx, userId);
  await upsertSignInEnd(tx, { user_id: userId, ended_at: nowMs });
}

/** Returns whether a visit to the provider that began at this time brings no proof of the user back. Rule: AUTH-74. */
export async function isVisitEnded(tx: Tx, userId: string, begunMs: number): Promise<boolean> {
  const end = await selectSignInEnd(tx, userId);
  return end !== undefined && end.endedAt >= begunMs;
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
  { userId, signInId, identity: { issuer, subject } }: TicketUse & { readonly identity: Known },
): Promise<Secret> {
  const ticket = createRawTicket();
  const hash = hashCredential(ticket.expose());
  const ticketEndsMs = clock.now() + ticketMs;
  await insertTicket(tx, { hash, user_id: userId, sign_in_id: signInId, expires_at: ticketEndsMs, issuer, subject });
  return ticket;
}

type ShownTicket = TicketUse & { readonly ticket: string };

/** Returns a ticket that belongs to this user and this sign-in; `null` for any other. */
async function findTicket(read: Reader, { clock }: Pick<Services, 'clock'>, shown: ShownTicket) {
  const known = await selectTicket(read, hashCredential(shown.ticket), clock.now());
  return known?.userId === shown.userId && known.signInId === shown.signInId ? known : null;
}

/** Returns whether a ticket belongs to this user and this sign-in. It is not used up here. */
export async function isTicketOf(services: Pick<Services, 'db' | 'clock'>, shown: ShownTicket): Promise<boolean> {
  return (await findTicket(services.db.read, services, shown)) !== null;
}

/** Consumes a ticket, in the transaction that it authorizes; returns whether it was still valid. Rule: FIT-7. */
export async function useUpTicket(tx: Tx, services: Pick<Services, 'clock'>, shown: ShownTicket): Promise<boolean> {
  const ticket = await findTicket(tx, services, shown);
  if (!ticket || !(await deleteTicket(tx, hashCredential(shown.ticket)))) return false;
  const { issuer, subject, userId } = ticket;
  if (issuer !== null && subject !== null) await updateSignedIn(tx, { issuer, subject, userId }, services.clock.now());
  return true;
}

/** Removes unused tickets, and ends that no visit began before; returns the number of tickets. */
export function pruneTickets({ db, clock }: Pick<AllServices, 'db' | 'clock'>): Promise<number> {
  return db.transaction(async (tx) => {
    await deleteOldSignInEnds(tx, clock.now() - endKeptMs);
    return deleteOldTickets(tx, clock.now());
  });
}
