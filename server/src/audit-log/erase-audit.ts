import type { Tx } from '../db/database.ts';

/**
 * Takes away, for good, what the records about a person tell besides ids: network, details and changes of all in which the
 * person acted, was the subject or owned it. Their hashes stay, so the log is still sound, and the salt goes, so that no one
 * can guess. To be recorded as `user.erased` in the same transaction, and that record to be signed. Rules: AUDIT-14, AUDIT-20.
 * @returns how many records there were
 */
export async function eraseAuditContent(tx: Tx, userId: string): Promise<number> {
  let erased = 0;
  for (const column of ['actor_user_id', 'subject_id', 'subject_owner_id'] as const) {
    const { numUpdatedRows } = await tx
      .updateTable('audit_log')
      .set({ network: '', details: '{}', changes: '{}', salt: null })
      .where(column, '=', userId)
      .where('salt', 'is not', null)
      .executeTakeFirst();
    erased += Number(numUpdatedRows);
  }
  return erased;
}
