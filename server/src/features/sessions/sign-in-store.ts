import type { Reader, Tx } from '../../db/database.ts';
import { type SignInStep, signInSteps } from './session.ts';

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

/** Active people and where mail about their accounts goes: to the address of before as long as a new one is unproved. */
function mailTargets(read: Reader) {
  return read
    .selectFrom('users')
    .where('is_deleted', '=', 0)
    .select(['id', 'full_name as fullName'])
    .select((eb) => eb.fn.coalesce('recovery_email', 'email').as('mailTo'));
}

/** Where mail about an active person's account goes. Rule: AUTH-49. */
export function selectMailTarget(read: Reader, userId: string) {
  return mailTargets(read).where('id', '=', userId).executeTakeFirst();
}

/** The active person who may recover a password by naming this address, which is not always where the mail goes. Rule: AUTH-49. */
export function selectRecoverable(read: Reader, orgId: string, email: string) {
  // The organization in each half: only then each is looked up in an index of its own.
  return mailTargets(read)
    .where((eb) => eb.or([eb.and({ org_id: orgId, email }), eb.and({ org_id: orgId, recovery_email: email })]))
    .executeTakeFirst();
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
    .set((eb) => ({
      has_logged_in: 1,
      signed_in_at: eb.fn.coalesce('signed_in_at', eb.val(nowMs)),
      updated_at: nowMs,
    }))
    .where('id', '=', userId)
    .where((eb) => eb.or([eb('has_logged_in', '=', 0), eb('signed_in_at', 'is', null)]))
    .execute();
}

/** Takes somebody's password away. */
export async function deletePassword(tx: Tx, userId: string): Promise<void> {
  await tx.deleteFrom('password_credentials').where('user_id', '=', userId).execute();
}

/** Gives somebody a password, in place of the one that is there. */
export async function upsertPassword(
  tx: Tx,
  { userId, passwordHash, nowMs }: { readonly userId: string; readonly passwordHash: string; readonly nowMs: number },
): Promise<void> {
  await tx
    .insertInto('password_credentials')
    .values({ user_id: userId, password_hash: passwordHash, updated_at: nowMs })
    .onConflict((oc) => oc.column('user_id').doUpdateSet({ password_hash: passwordHash, updated_at: nowMs }))
    .execute();
}
