import type { Reader, Tx } from '../../db/database.ts';
import { mailTargets } from '../../db/members/mail-targets.ts';

/**
 * Returns the active user who may recover a password by naming this address, which is not always where the mail goes.
 * Rule: AUTH-49.
 */
export function selectRecoverable(read: Reader, orgId: string, email: string) {
  // The organization in each half: only then each is looked up in an index of its own.
  return mailTargets(read)
    .where((eb) => eb.or([eb.and({ org_id: orgId, email }), eb.and({ org_id: orgId, recovery_email: email })]))
    .executeTakeFirst();
}

/** Records the first complete sign-in; returns whether it was the first. Rule: AUTH-11. */
export async function updateHasLoggedIn(tx: Tx, userId: string, nowMs: number): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('users')
    .set((eb) => ({
      has_logged_in: 1,
      signed_in_at: eb.fn.coalesce('signed_in_at', eb.val(nowMs)),
      updated_at: nowMs,
    }))
    .where('id', '=', userId)
    .where((eb) => eb.or([eb('has_logged_in', '=', 0), eb('signed_in_at', 'is', null)]))
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}
