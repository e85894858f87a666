import type { Reader, Tx } from '../../db/database.ts';
import { type SignInStep, signInSteps } from './session.ts';

/** The organization that people sign in to; `undefined` while there is none, or none any more. */
export function selectSignInOrganization(read: Reader) {
  return read
    .selectFrom('organizations')
    .where('is_deleted', '=', 0)
    .select(['id', 'account_type as accountType'])
    .executeTakeFirst();
}

/** How the people of an organization sign in. */
export async function selectSteps(read: Reader, orgId: string): Promise<readonly SignInStep[]> {
  const { steps } = await read
    .selectFrom('auth_configs')
    .where('org_id', '=', orgId)
    .select('steps')
    .executeTakeFirstOrThrow();
  return signInSteps.parse(JSON.parse(steps));
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

/** The hash of the password that somebody may sign in with; `null` without one, or once user or organization is deleted. */
export async function selectPasswordHash(read: Reader, userId: string): Promise<string | null> {
  const row = await read
    .selectFrom('password_credentials as p')
    .innerJoin('users as u', 'u.id', 'p.user_id')
    .innerJoin('organizations as o', 'o.id', 'u.org_id')
    .where('p.user_id', '=', userId)
    .where('u.is_deleted', '=', 0)
    .where('o.is_deleted', '=', 0)
    .select('p.password_hash')
    .executeTakeFirst();
  return row?.password_hash ?? null;
}

/** Notes the first complete sign-in. Rule: AUTH-11. */
export async function updateHasLoggedIn(tx: Tx, userId: string, nowMs: number): Promise<void> {
  await tx
    .updateTable('users')
    .set({ has_logged_in: 1, updated_at: nowMs })
    .where('id', '=', userId)
    .where('has_logged_in', '=', 0)
    .execute();
}

/** Takes somebody's password away. */
export async function deletePassword(tx: Tx, userId: string): Promise<void> {
  await tx.deleteFrom('password_credentials').where('user_id', '=', userId).execute();
}

/** Gives somebody a first password. */
export async function insertPassword(
  tx: Tx,
  { userId, passwordHash, nowMs }: { readonly userId: string; readonly passwordHash: string; readonly nowMs: number },
): Promise<void> {
  await tx
    .insertInto('password_credentials')
    .values({ user_id: userId, password_hash: passwordHash, updated_at: nowMs })
    .execute();
}
