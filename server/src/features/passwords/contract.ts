import { requireStrong, wordsOf } from '../../access/password-strength.ts';
import type { Proof } from '../../access/proof.ts';
import type { Reader, Tx } from '../../db/database.ts';
import type { Services } from '../../services.ts';
import {
  deletePassword,
  selectHashesOfEachCost,
  selectHasPassword,
  selectNames,
  selectPasswordHash,
  upsertPassword,
} from './password-store.ts';

/**
 * Whether somebody knows a person's password; `null` when not, in the same time for everybody. A hash of a lower cost than
 * today's is made anew. Rules: AUTH-9, AUTH-52.
 * @param userId `null` for nobody
 */
export async function provePassword(services: Services, userId: string | null, given: string): Promise<Proof | null> {
  const { db, passwords, clock } = services;
  const stored = userId === null ? null : await selectPasswordHash(db.read, userId);
  const isRight = await passwords.matches(stored, given);
  if (userId === null || stored === null || !isRight) return null;
  const renewed = passwords.isOutdated(stored) ? await passwords.hash(given) : null;
  return {
    holds: async (tx) => {
      // Whoever was deleted meanwhile, and perhaps restored, no longer has the password that was proved.
      if ((await selectPasswordHash(tx, userId)) !== stored) return false;
      if (renewed !== null) await upsertPassword(tx, { userId, passwordHash: renewed, nowMs: clock.now() });
      return true;
    },
  };
}

/** Throws `invalidInput` for a new password of a user that guessing finds quickly. Rule: PASSWORD-20. */
export async function requireStrongFor(
  { db }: Pick<Services, 'db'>,
  userId: string,
  { field, password }: { readonly field: string; readonly password: string },
): Promise<void> {
  await requireStrong(field, password, wordsOf(await selectNames(db.read, userId)));
}

/** Gives somebody a password, already hashed, in place of the one that is there. */
export async function setPassword(
  tx: Tx,
  password: { readonly userId: string; readonly passwordHash: string; readonly nowMs: number },
): Promise<void> {
  await upsertPassword(tx, password);
}

/** Takes somebody's password away. */
export async function takePassword(tx: Tx, userId: string): Promise<void> {
  await deletePassword(tx, userId);
}

/** Whether somebody has a password. */
export function hasPassword(read: Reader, userId: string): Promise<boolean> {
  return selectHasPassword(read, userId);
}

/** Has refused sign-ins take as long as for the dearest hash in the store, such as one that was imported. Rule: CRED-5. */
export async function levelRefusals(read: Reader, passwords: Pick<Services['passwords'], 'levelWith'>): Promise<void> {
  await passwords.levelWith(await selectHashesOfEachCost(read));
}
