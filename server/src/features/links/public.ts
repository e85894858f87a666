import { setImmediate } from 'node:timers/promises';
import { unauthorized } from '../../access/bearer.ts';
import { ApiError } from '../../base/errors.ts';
import type { Secret } from '../../base/secret.ts';
import { batchRows, removeInBatches } from '../../db/batches.ts';
import type { Reader, Tx } from '../../db/database.ts';
import type { AllServices, Services } from '../../services.ts';
import {
  createRawLinkToken,
  endedLinkKeptMs,
  type LinkPurpose,
  linkAddress,
  linkHash,
  linkMs,
  type StoredLink,
  validateLink,
} from './link.ts';
import {
  deleteOldLinks,
  endOpenLinks,
  endOpenLinksOfOrg,
  endShownLinks,
  insertLinks,
  selectLink,
  updateDelivery,
  updateNotCurrent,
  updateUsed,
} from './link-store.ts';

type IssuingServices = Pick<Services, 'newId' | 'clock'> & { readonly config: Pick<Services['config'], 'frontendUrl'> };

interface LinkInput {
  readonly orgId: string;
  readonly userId: string;
  /** For an invitation: the user had been a member before. */
  readonly isReturning?: boolean;
  /** Of a confirmation: whether the current password is to be asked for. */
  readonly needsPassword?: boolean;
  /** Of a confirmation: the address that another user holds unverified. */
  readonly email?: string;
}

/** A link that was just made. */
export interface IssuedLink {
  readonly id: string;
  readonly userId: string;
  /** The web address; for its owner only, and not stored. */
  readonly address: Secret;
  /** Milliseconds since 1970; `null`: it leads to the sign-in page, and never ends. */
  readonly expiresAtMs: number | null;
}

interface Issuing {
  readonly purpose: LinkPurpose;
  /** The link contains a secret, as one does that sets a password; otherwise it leads to the sign-in page. */
  readonly setsPassword: boolean;
  /** The user who asked for it; `null`: its owner, or someone who claims to be. */
  readonly createdBy: string | null;
  /** Delivery by mail, or in the response. */
  readonly delivery: 'sending' | 'shown';
}

function newLink({ newId, config }: IssuingServices, input: LinkInput, issuing: Issuing & { readonly nowMs: number }) {
  const { purpose, setsPassword, createdBy, delivery, nowMs } = issuing;
  const raw = setsPassword ? createRawLinkToken() : null;
  const link: IssuedLink = {
    id: newId(),
    userId: input.userId,
    address: linkAddress(config.frontendUrl, raw, purpose),
    expiresAtMs: setsPassword ? nowMs + linkMs[purpose] : null,
  };
  const row = {
    id: link.id,
    hash: raw && linkHash(raw),
    org_id: input.orgId,
    user_id: input.userId,
    purpose,
    is_returning: input.isReturning ? 1 : 0,
    needs_password: input.needsPassword ? 1 : 0,
    email: input.email ?? null,
    delivery,
    created_by: createdBy,
    created_at: nowMs,
    expires_at: link.expiresAtMs,
    is_current: 1,
  } as const;
  return { link, row };
}

/**
 * Issues a link for each of some users, in the same order; their earlier links of the purpose stop working. Rules:
 * LINK-1, LINK-3, INVITE-22.
 */
export async function issueLinks(
  tx: Tx,
  services: IssuingServices,
  { inputs, ...issuing }: Issuing & { readonly inputs: readonly LinkInput[] },
): Promise<IssuedLink[]> {
  const { purpose } = issuing;
  // The same time for all, so that they don't differ by what the clock did meanwhile.
  const nowMs = services.clock.now();
  const made = inputs.map((input) => newLink(services, input, { ...issuing, nowMs }));
  for (let start = 0; start < made.length; start += batchRows) {
    const some = made.slice(start, start + batchRows);
    const userIds = some.map(({ link }) => link.userId);
    await endOpenLinks(tx, { userIds, purpose }, { nowMs, reason: 'replaced' });
    await updateNotCurrent(tx, { userIds, purpose });
    await insertLinks(
      tx,
      some.map(({ row }) => row),
    );
    // There may be a thousand: readers get their turn.
    await setImmediate();
  }
  return made.map(({ link }) => link);
}

/** What links that set a password are for. */
const setsPassword: readonly LinkPurpose[] = ['invitation', 'reset'];

/**
 * Returns the valid link that a secret belongs to and that sets a password. Throws `linkGone` for one that was used,
 * replaced or is expired, and the 401 of every wrong credential for anything else. Rules: ERR-21, LINK-2, PASSWORD-12.
 */
export async function requireLink(
  read: Reader,
  { clock }: Pick<Services, 'clock'>,
  secret: Secret,
): Promise<StoredLink> {
  const link = await selectLink(read, linkHash(secret));
  return validated(link && setsPassword.includes(link.purpose) ? link : undefined, clock.now());
}

/** The link to confirm an address, or to approve its change, that a secret belongs to, as `requireLink` for one to set a password. Rule: ADDRESS-5. */
export async function requireConfirmation(
  read: Reader,
  { clock }: Pick<Services, 'clock'>,
  secret: Secret,
): Promise<StoredLink> {
  const link = await selectLink(read, linkHash(secret));
  return validated(link && !setsPassword.includes(link.purpose) ? link : undefined, clock.now());
}

function validated(link: StoredLink | undefined, nowMs: number): StoredLink {
  const verdict = validateLink(link, nowMs);
  if (verdict === 'gone') throw new ApiError('linkGone');
  if (!link || verdict === 'unknown') throw unauthorized.invalid();
  return link;
}

/** Consumes a link, and ends all other links of its owner, who has a new password now. Rules: LINK-2, LINK-3. */
export async function useUpLink(tx: Tx, { id, userId }: StoredLink, nowMs: number): Promise<void> {
  await updateUsed(tx, id, nowMs);
  await endOpenLinks(tx, { userIds: [userId] }, { nowMs, reason: 'password-changed' });
}

/** Uses a link up by which the owner of the verified address approves another one. */
export async function useUpApproval(tx: Tx, { id }: StoredLink, nowMs: number): Promise<void> {
  await updateUsed(tx, id, nowMs);
}

/** Uses a link to confirm an address up; the other links of its owner end, which went to the earlier address. */
export async function useUpConfirmation(tx: Tx, { id, userId }: StoredLink, nowMs: number): Promise<void> {
  await updateUsed(tx, id, nowMs);
  await endOpenLinks(tx, { userIds: [userId] }, { nowMs, reason: 'email-changed' });
}

/** Ends the invitation links of a user who has signed in, by whatever method: they have been accepted. Rule: LINK-3. */
export async function acceptInvitations(tx: Tx, userId: string, nowMs: number): Promise<void> {
  await endOpenLinks(tx, { userIds: [userId], purpose: 'invitation' }, { nowMs, reason: 'used' });
}

/** Ends all links of a user. Rules: LINK-3, USER-43. */
export async function endLinks(
  tx: Tx,
  {
    userId,
    nowMs,
    reason,
  }: {
    readonly userId: string;
    readonly nowMs: number;
    readonly reason: 'email-changed' | 'password-changed' | 'owner-deleted' | 'sessions-ended';
  },
): Promise<void> {
  await endOpenLinks(tx, { userIds: [userId] }, { nowMs, reason });
  // A restored user has not been invited again yet.
  if (reason === 'owner-deleted') await updateNotCurrent(tx, { userIds: [userId] });
}

/** Ends the links that some users were shown, who are administrators no longer: such a link makes any of them its owner. Rule: LEAVER-9. */
export async function endLinksShownTo(tx: Tx, userIds: readonly string[], nowMs: number): Promise<void> {
  if (userIds.length > 0) await endShownLinks(tx, userIds, nowMs);
}

/** Ends every link of an organization that comes back after it was deleted. Rule: CLI-8. */
export async function endLinksOfOrg(tx: Tx, { orgId, nowMs }: { orgId: string; nowMs: number }): Promise<void> {
  await endOpenLinksOfOrg(tx, orgId, { nowMs, reason: 'owner-deleted' });
}

/** Notes which of the mails with links went out. */
export async function noteDeliveries(
  { recordOutcome }: Pick<Services, 'recordOutcome'>,
  { sent, failed }: { readonly sent: readonly string[]; readonly failed: readonly string[] },
): Promise<void> {
  await recordOutcome('delivery', async (tx) => {
    if (sent.length > 0) await updateDelivery(tx, sent, 'sent');
    if (failed.length > 0) await updateDelivery(tx, failed, 'failed');
  });
}

/** Removes links that ended long ago, in batches; returns their number. */
export async function pruneLinks({ db, clock }: Pick<AllServices, 'db' | 'clock'>): Promise<number> {
  const beforeMs = clock.now() - endedLinkKeptMs;
  return removeInBatches(() => db.transaction((tx) => deleteOldLinks(tx, beforeMs, batchRows)));
}
