import { sql } from 'kysely';
import type { CredentialHash } from '../../base/secret.ts';
import type { Reader, Tx } from '../../db/database.ts';
import { isAdministrator } from '../../db/members/membership.ts';
import type { LinkEndReason } from '../../db/schema/sign-in-tables.ts';
import type { NewRow } from '../../db/schema/tables.ts';
import type { LinkPurpose, StoredLink } from './link.ts';

/** Returns a link by the hash of its secret, in any state. */
export async function selectLink(read: Reader, hash: CredentialHash): Promise<StoredLink | undefined> {
  const row = await read
    .selectFrom('one_time_links as l')
    .innerJoin('users as u', 'u.id', 'l.user_id')
    .innerJoin('organizations as o', 'o.id', 'l.org_id')
    .where('l.hash', '=', hash)
    .select(['l.id', 'l.org_id as orgId', 'l.user_id as userId', 'l.purpose'])
    .select(['l.expires_at as expiresAt', 'l.ended_at as endedAt', 'l.needs_password', 'l.email'])
    .select(['u.is_deleted as ownerDeleted', 'o.is_deleted as orgDeleted', 'l.delivery', 'l.created_by as createdBy'])
    .select(isAdministrator('l.created_by').as('makerIsAdministrator'))
    .executeTakeFirst();
  if (!row) return undefined;
  const { ownerDeleted, orgDeleted, needs_password, delivery, createdBy, makerIsAdministrator, ...link } = row;
  const wasShown = delivery === 'shown' && createdBy !== null;
  return {
    ...link,
    isOwnerGone: ownerDeleted === 1 || orgDeleted === 1,
    isMakerGone: wasShown && !makerIsAdministrator,
    needsPassword: needs_password === 1,
  };
}

/** Adds links, as many as one statement takes. */
export async function insertLinks(tx: Tx, rows: readonly NewRow<'one_time_links'>[]): Promise<void> {
  await tx.insertInto('one_time_links').values(rows).execute();
}

/** Ends the open links of some users, those of one purpose or all. */
export async function endOpenLinks(
  tx: Tx,
  which: { readonly userIds: readonly string[]; readonly purpose?: LinkPurpose },
  end: { readonly nowMs: number; readonly reason: LinkEndReason },
): Promise<void> {
  const open = tx
    .updateTable('one_time_links')
    .set({ ended_at: end.nowMs, end_reason: end.reason })
    .where('user_id', 'in', which.userIds)
    .where('ended_at', 'is', null);
  await (which.purpose === undefined ? open : open.where('purpose', '=', which.purpose)).execute();
}

/**
 * Ends the open links that some users were shown, who are no longer administrators: those that they asked for, and those
 * that the command showed of their own accounts.
 */
export async function endShownLinks(tx: Tx, makerIds: readonly string[], nowMs: number): Promise<void> {
  const open = tx
    .updateTable('one_time_links')
    .set({ ended_at: nowMs, end_reason: 'maker-left' })
    // Written out, so that SQLite sees that the index of these links is the one to use.
    .where('delivery', '=', sql.lit('shown'))
    .where('ended_at', 'is', null);
  // One after the other: for either of both, no index is used.
  await open.where('created_by', 'in', makerIds).execute();
  await open.where('created_by', 'is', null).where('user_id', 'in', makerIds).execute();
}

/** Ends all open links of an organization. */
export async function endOpenLinksOfOrg(
  tx: Tx,
  orgId: string,
  end: { readonly nowMs: number; readonly reason: LinkEndReason },
): Promise<void> {
  await tx
    .updateTable('one_time_links')
    .set({ ended_at: end.nowMs, end_reason: end.reason })
    .where('org_id', '=', orgId)
    .where('ended_at', 'is', null)
    .execute();
}

/** Marks the links of some users, of one purpose or of all, as no longer current. */
export async function updateNotCurrent(
  tx: Tx,
  { userIds, purpose }: { readonly userIds: readonly string[]; readonly purpose?: LinkPurpose },
): Promise<void> {
  const current = tx
    .updateTable('one_time_links')
    .set({ is_current: 0 })
    .where('user_id', 'in', userIds)
    .where('is_current', '=', 1);
  await (purpose === undefined ? current : current.where('purpose', '=', purpose)).execute();
}

/** Notes that a link was used. */
export async function updateUsed(tx: Tx, id: string, nowMs: number): Promise<void> {
  await tx.updateTable('one_time_links').set({ ended_at: nowMs, end_reason: 'used' }).where('id', '=', id).execute();
}

/** Notes what became of the mails with some links. */
export async function updateDelivery(tx: Tx, ids: readonly string[], delivery: 'sent' | 'failed'): Promise<void> {
  await tx
    .updateTable('one_time_links')
    .set({ delivery })
    .where('id', 'in', ids)
    .where('delivery', '=', 'sending')
    .execute();
}

/** Removes up to `limit` links that were replaced and that ended before a time. */
export async function deleteOldLinks(tx: Tx, beforeMs: number, limit: number): Promise<number> {
  const old = tx
    .selectFrom('one_time_links')
    .where((eb) => eb.or([eb('purpose', '!=', 'invitation'), eb('is_current', '=', 0)]))
    .where((eb) => eb.or([eb('ended_at', '<', beforeMs), eb('expires_at', '<', beforeMs)]))
    .select('id')
    .limit(limit);
  const { numDeletedRows } = await tx.deleteFrom('one_time_links').where('id', 'in', old).executeTakeFirst();
  return Number(numDeletedRows);
}
