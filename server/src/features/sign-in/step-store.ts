import type { Reader, Tx } from '../../db/database.ts';
import type { NewRow } from '../../db/schema/tables.ts';
import { type SignInConfig, type SignInStep, signInSteps } from './steps.ts';

/** How the people of an organization sign in. */
export async function selectSignInConfig(read: Reader, orgId: string): Promise<SignInConfig> {
  const { steps, updatedAt } = await read
    .selectFrom('auth_configs')
    .where('org_id', '=', orgId)
    .select(['steps', 'updated_at as updatedAt'])
    .executeTakeFirstOrThrow();
  return { steps: signInSteps.parse(JSON.parse(steps)), updatedAt };
}

/** Sets how the people of an organization sign in from now on. */
export async function updateSteps(
  tx: Tx,
  { orgId, steps, nowMs }: { readonly orgId: string; readonly steps: readonly SignInStep[]; readonly nowMs: number },
): Promise<void> {
  await tx
    .updateTable('auth_configs')
    .set({ steps: JSON.stringify(steps), updated_at: nowMs })
    .where('org_id', '=', orgId)
    .execute();
}

/** How far a sign-in of several steps has come; `undefined` before its first step. */
export function selectProgress(read: Reader, id: string, nowMs: number) {
  return read
    .selectFrom('sign_in_progress')
    .where('id', '=', id)
    .where('expires_at', '>', nowMs)
    .select(['user_id as userId', 'steps_done as stepsDone', 'config_updated_at as configUpdatedAt', 'methods'])
    .executeTakeFirst();
}

/** Notes that a sign-in has come a step further; answers whether it was where it was thought to be. */
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

/** Ends a sign-in whose last step is done; answers whether it was where it was thought to be. */
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

/** Whatever somebody has begun to sign in with has to begin anew. */
export async function deleteProgressOf(tx: Tx, userId: string): Promise<void> {
  await tx.deleteFrom('sign_in_progress').where('user_id', '=', userId).execute();
}

/** Forgets sign-ins that took too long; answers how many. */
export async function deleteOldProgress(tx: Tx, nowMs: number): Promise<number> {
  const { numDeletedRows } = await tx
    .deleteFrom('sign_in_progress')
    .where('expires_at', '<=', nowMs)
    .executeTakeFirst();
  return Number(numDeletedRows);
}

/** Sets how the people of a new organization sign in. */
export async function insertSteps(
  tx: Tx,
  { orgId, steps, nowMs }: { readonly orgId: string; readonly steps: readonly SignInStep[]; readonly nowMs: number },
): Promise<void> {
  await tx
    .insertInto('auth_configs')
    .values({ org_id: orgId, steps: JSON.stringify(steps), updated_at: nowMs })
    .execute();
}
