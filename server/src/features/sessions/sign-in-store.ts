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

/** The hash of somebody's password; `null` without one. */
export async function selectPasswordHash(read: Reader, userId: string): Promise<string | null> {
  const row = await read
    .selectFrom('password_credentials')
    .where('user_id', '=', userId)
    .select('password_hash')
    .executeTakeFirst();
  return row?.password_hash ?? null;
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
