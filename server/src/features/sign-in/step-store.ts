import type { Reader, Tx } from '../../db/database.ts';
import type { NewRow } from '../../db/schema/tables.ts';
import { type SignInConfig, type SignInStep, signInSteps } from './steps.ts';

/** Sign-in steps of an organization. */
export async function selectSignInConfig(read: Reader, orgId: string): Promise<SignInConfig> {
  const { steps, updatedAt } = await read
    .selectFrom('auth_configs')
    .where('org_id', '=', orgId)
    .select(['steps', 'updated_at as updatedAt'])
    .executeTakeFirstOrThrow();
  return { steps: signInSteps.parse(JSON.parse(steps)), updatedAt };
}

/**
 * Sets the sign-in steps of an organization from now on.
 * @param input `by`: the administrator who answers for them; `null`: the operator set them
 */
export async function updateSteps(
  tx: Tx,
  {
    orgId,
    steps,
    by,
    nowMs,
  }: {
    readonly orgId: string;
    readonly steps: readonly SignInStep[];
    readonly by: string | null;
    readonly nowMs: number;
  },
): Promise<void> {
  await tx
    .updateTable('auth_configs')
    .set({ steps: JSON.stringify(steps), updated_at: nowMs, set_by: by })
    .where('org_id', '=', orgId)
    .execute();
}

/** Returns the progress of a sign-in of several steps; `undefined` before its first step. */
export function selectProgress(read: Reader, id: string, nowMs: number) {
  return read
    .selectFrom('sign_in_progress')
    .where('id', '=', id)
    .where('expires_at', '>', nowMs)
    .select(['user_id as userId', 'steps_done as stepsDone', 'config_updated_at as configUpdatedAt', 'methods'])
    .executeTakeFirst();
}

/** Advances a sign-in by a step; returns whether it was at the expected one. */
export async function advanceProgress(tx: Tx, row: NewRow<'sign_in_progress'>): Promise<boolean> {
  if (row.steps_done === 1) {
    await tx.deleteFrom('sign_in_progress').where('id', '=', row.id).execute();
    await tx.insertInto('sign_in_progress').values(row).execute();
    return true;
  }
  const { numUpdatedRows } = await tx
    .updateTable('sign_in_progress')
    .set({ steps_done: row.steps_done, methods: row.methods ?? null })
    .where('id', '=', row.id)
    .where('user_id', '=', row.user_id)
    .where('steps_done', '=', row.steps_done - 1)
    .where('config_updated_at', '=', row.config_updated_at)
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

/** Ends a sign-in whose last step is done; returns whether it was at the expected one. */
export async function deleteProgress(
  tx: Tx,
  { id, userId, stepsDone }: { readonly id: string; readonly userId: string; readonly stepsDone: number },
): Promise<boolean> {
  const { numDeletedRows } = await tx
    .deleteFrom('sign_in_progress')
    .where('id', '=', id)
    .where('user_id', '=', userId)
    .where('steps_done', '=', stepsDone)
    .executeTakeFirst();
  return numDeletedRows === 1n;
}

/** Deletes the unfinished sign-ins of a user. */
export async function deleteProgressOf(tx: Tx, userId: string): Promise<void> {
  await tx.deleteFrom('sign_in_progress').where('user_id', '=', userId).execute();
}

/** Removes sign-ins that took too long; returns their number. */
export async function deleteOldProgress(tx: Tx, nowMs: number): Promise<number> {
  const { numDeletedRows } = await tx
    .deleteFrom('sign_in_progress')
    .where('expires_at', '<=', nowMs)
    .executeTakeFirst();
  return Number(numDeletedRows);
}

/** Sets the sign-in steps of a new organization. */
export async function insertSteps(
  tx: Tx,
  { orgId, steps, nowMs }: { readonly orgId: string; readonly steps: readonly SignInStep[]; readonly nowMs: number },
): Promise<void> {
  await tx
    .insertInto('auth_configs')
    .values({ org_id: orgId, steps: JSON.stringify(steps), updated_at: nowMs })
    .execute();
}
