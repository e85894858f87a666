import { requireStrong, wordsOf } from '../../access/password-strength.ts';
import type { Principal } from '../../access/principal.ts';
import { type Proof, refuseSignIn } from '../../access/proof.ts';
import type { Origin } from '../../base/origin.ts';
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
 * Checks a user's password; returns `null` for a wrong one, in the same time for all users. A hash of a lower cost than
 * today's is replaced. Rules: AUTH-9, AUTH-52.
 * @param userId `null` for an unknown user
 */
export async function provePassword(services: Services, userId: string | null, given: string): Promise<Proof | null> {
  const { db, passwords, clock } = services;
  const stored = userId === null ? null : await selectPasswordHash(db.read, userId);
  const isRight = await passwords.matches(stored, given);
  if (userId === null || stored === null || !isRight) return null;
  const renewed = passwords.isOutdated(stored) ? await passwords.hash(given) : null;
  return {
    consume: async (tx) => {
      // A user who was deleted meanwhile, and perhaps restored, no longer has the password that was proved.
      if ((await selectPasswordHash(tx, userId)) !== stored) return false;
      if (renewed !== null) await upsertPassword(tx, { userId, passwordHash: renewed, nowMs: clock.now() });
      return true;
    },
  };
}

interface Proving {
  readonly user: { readonly id: string; readonly email: string; readonly orgId: string };
  readonly actor: Principal | { readonly userId: string };
  /** Action that is recorded where the password is wrong. */
  readonly action: 'user.updated' | 'password.changed';
  readonly given: string;
  readonly origin: Origin;
}

/** The credential that a password is tried with, so that its tries count together; the user, where a link was opened. */
function askerOf(actor: Proving['actor']): string {
  if (!('kind' in actor)) return actor.userId;
  return actor.kind === 'session' ? actor.sessionId : actor.tokenId;
}

/**
 * Proves the current password of a user who changes a credential, slowed down like sign-in; the proof is consumed in
 * the transaction of the change. A wrong password throws the same as at sign-in. Rules: ADDRESS-4, AUTH-43.
 */
export async function proveCurrentPassword(services: Services, proving: Proving): Promise<Proof> {
  const { limits } = services;
  const { user, actor, action, given, origin } = proving;
  // An attacker with an open session or a stolen token must not find the password by trying.
  const tried = { email: user.email, network: origin.network, isKnown: async () => true, sessionId: askerOf(actor) };
  const attempt = await limits.trySignIn(tried);
  const proof = await provePassword(services, user.id, given).catch(async (error) => {
    await attempt.undecided();
    throw error;
  });
  if (!proof) {
    const record = { action, outcome: 'failure', orgId: user.orgId, actor, subjectId: user.id, origin } as const;
    const details = { reason: 'wrong-password' };
    await services.recordAttempt({ ...record, details });
    throw (await attempt.failed()) ?? refuseSignIn();
  }
  await attempt.succeeded();
  return proof;
}

/** Throws `invalidInput` for a new password of a user that guessing finds quickly. Rule: PASSWORD-20. */
export async function requireStrongFor(
  { db }: Pick<Services, 'db'>,
  userId: string,
  { field, password }: { readonly field: string; readonly password: string },
): Promise<void> {
  await requireStrong(field, password, wordsOf(await selectNames(db.read, userId)));
}

/** Sets a user's password, already hashed. */
export async function setPassword(
  tx: Tx,
  password: { readonly userId: string; readonly passwordHash: string; readonly nowMs: number },
): Promise<void> {
  await upsertPassword(tx, password);
}

/** Deletes a user's password. */
export async function takePassword(tx: Tx, userId: string): Promise<void> {
  await deletePassword(tx, userId);
}

/** Returns whether a user has a password. */
export function hasPassword(read: Reader, userId: string): Promise<boolean> {
  return selectHasPassword(read, userId);
}

/**
 * Makes failed sign-ins take as long as for the most expensive hash in the store, such as an imported one. Rule:
 * CRED-5.
 */
export async function levelFailureTime(
  read: Reader,
  passwords: Pick<Services['passwords'], 'levelWith'>,
): Promise<void> {
  await passwords.levelWith(await selectHashesOfEachCost(read));
}
