import { timingSafeEqual } from 'node:crypto';
import type { Secret } from '../../base/secret.ts';
import type { Reader, Tx } from '../../db/database.ts';
import type { Encryption } from '../../keys/encryption.ts';
import type { AllServices, Services } from '../../services.ts';
import { areOff, codeForm, codeMs, isOpen, mintRawCode, withWrongCode } from './code.ts';
import {
  deleteCode,
  deleteOldWrongCodes,
  deleteWrongCodes,
  selectCode,
  selectWrongCodes,
  upsertCode,
  upsertWrongCodes,
} from './code-store.ts';

/** So few digits could be guessed from a plain hash: what is stored takes a key to make (RFC 2104). Rule: PASSWORD-6. */
function macOf(encryption: Encryption, userId: string, code: string): string {
  return encryption.mac('one-time code', `${userId} ${code}`);
}

function isEqual(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other));
}

/** Makes a code for somebody, in place of the last one. Rules: AUTH-42, AUTH-51. */
export async function issueCode(tx: Tx, { clock, encryption }: Services, userId: string): Promise<Secret> {
  const raw = mintRawCode();
  const mac = macOf(encryption, userId, raw.expose());
  await upsertCode(tx, { userId, mac, expiresAt: clock.now() + codeMs, tries: 0 });
  return raw;
}

/**
 * Tries a code: counts a wrong one, and answers whether it is the right one. That uses nothing up. After 30 wrong ones
 * in a day none is right for 24 hours. Rule: AUTH-71.
 * @param userId `null` for nobody, who has no code
 */
export async function tryCode(services: AllServices, userId: string | null, given: string): Promise<boolean> {
  const { db, clock, encryption } = services;
  if (userId === null || !codeForm.test(given)) return false;
  return db.transaction(async (tx) => {
    const code = await selectCode(tx, userId);
    const wrong = await selectWrongCodes(tx, userId);
    const nowMs = clock.now();
    if (!code?.mac || !isOpen(code, nowMs) || areOff(wrong, nowMs)) return false;
    if (isEqual(code.mac, macOf(encryption, userId, given))) return true;
    await upsertCode(tx, { ...code, tries: code.tries + 1 });
    await upsertWrongCodes(tx, userId, withWrongCode(wrong, nowMs));
    return false;
  });
}

/** Uses a code up, in the transaction of what it was tried for; answers whether it was still there. */
export async function useUpCode(
  tx: Tx,
  services: Services,
  { userId, given }: { userId: string; given: string },
): Promise<boolean> {
  const code = await selectCode(tx, userId);
  const isRight = code?.mac && isOpen(code, services.clock.now());
  if (!code?.mac || !isRight || !isEqual(code.mac, macOf(services.encryption, userId, given))) return false;
  await upsertCode(tx, { ...code, mac: null });
  return true;
}

/** Forgets the codes of somebody who is deleted, or whose mail goes elsewhere from now on. */
export async function forgetCodes(tx: Tx, userId: string): Promise<void> {
  await deleteCode(tx, userId);
}

/** Returns whether a user gets no codes because too many were wrong. Rule: AUTH-71. */
export async function areCodesOff(read: Reader, { clock }: Pick<Services, 'clock'>, userId: string): Promise<boolean> {
  return areOff(await selectWrongCodes(read, userId), clock.now());
}

/** Forgets the wrong codes of a user, who gets codes again. */
export async function forgetWrongCodes(tx: Tx, userId: string): Promise<void> {
  await deleteWrongCodes(tx, userId);
}

/** Forgets wrong codes that count no longer; returns of how many users. */
export function pruneCodes({ db, clock }: Pick<AllServices, 'db' | 'clock'>): Promise<number> {
  return db.transaction((tx) => deleteOldWrongCodes(tx, clock.now()));
}
