import { timingSafeEqual } from 'node:crypto';
import type { Proof } from '../../access/proof.ts';
import type { Secret } from '../../base/secret.ts';
import type { Reader, Tx } from '../../db/database.ts';
import type { Encryption } from '../../keys/encryption.ts';
import type { AllServices, Services } from '../../services.ts';
import { countedNetwork } from '../known-networks/public.ts';
import {
  areOff,
  codeForm,
  codeMs,
  createRawCode,
  isOpen,
  noCode,
  type StoredCode,
  withTry,
  withWrongCode,
} from './code.ts';
import { deleteOldCodes, selectCodes, updateNoneWrong, updateUsedUp, upsertCode } from './code-store.ts';

/** What only the sign-in that a code belongs to has. */
interface OfSignIn {
  /** The random part of the sign-in, which the store has as a hash alone; `null`: of none. */
  readonly signIn: Secret | null;
}

/** A code as someone shows it. */
interface ShownCode extends OfSignIn {
  readonly given: string;
}

/**
 * So few digits could be guessed from a plain hash: what is stored takes a key to make (RFC 2104) and, where the code was
 * asked for within a sign-in, the random part of that one, which a copy of the store and the key do not have. Rules:
 * AUTH-73, PASSWORD-6.
 */
function macOf(encryption: Encryption, userId: string, { given, signIn }: ShownCode): string {
  if (signIn === null) return encryption.mac('one-time code', `${userId} ${given}`);
  return encryption.mac('one-time code of a sign-in', `${userId} ${signIn.expose()} ${given}`);
}

function isEqual(one: string, other: string): boolean {
  return one.length === other.length && timingSafeEqual(Buffer.from(one), Buffer.from(other));
}

/** A user, and the address of a caller. */
interface Asking {
  readonly userId: string;
  readonly address: string;
}

/** The codes of a user, and those of the network that a caller counts for. */
async function readCodes(read: Reader, services: Pick<Services, 'clock'>, asking: Asking) {
  const network = await countedNetwork(read, services, asking);
  const codes = await selectCodes(read, asking.userId);
  const own = codes.find((code) => code.network === network) ?? noCode(asking.userId, network);
  return { codes, own };
}

/**
 * Makes a code for a user, in place of the last one from the same network: what strangers ask for leaves the codes of known
 * networks as they are. With `signIn`, that sign-in alone takes the code. Rules: AUTH-42, AUTH-51, AUTH-73.
 */
export async function issueCode(tx: Tx, services: Services, asking: Asking & OfSignIn): Promise<Secret> {
  const { clock, encryption } = services;
  const raw = createRawCode();
  const mac = macOf(encryption, asking.userId, { given: raw.expose(), signIn: asking.signIn });
  const { own, codes } = await readCodes(tx, services, asking);
  const ofStrangers = codes.find(({ network }) => network === '' && network !== own.network);
  if (ofStrangers) await upsertCode(tx, { ...ofStrangers, mac: null });
  await upsertCode(tx, { ...own, mac, expiresAt: clock.now() + codeMs, tries: 0, otherTries: 0 });
  return raw;
}

/** The code that is the shown one, of this sign-in or of none, among those that may be tried from a network. */
function rightOf(services: Services, open: readonly StoredCode[], shown: ShownCode): StoredCode | undefined {
  return open.find(({ userId, mac }) =>
    [shown, { ...shown, signIn: null }].some(
      (one) => mac !== null && isEqual(mac, macOf(services.encryption, userId, one)),
    ),
  );
}

/** Uses a code up, in the transaction of what it was tried for; returns whether it was still there. */
async function useUpCode(
  tx: Tx,
  services: Services,
  { userId, network, ...shown }: ShownCode & { readonly userId: string; readonly network: string },
) {
  const nowMs = services.clock.now();
  const open = (await selectCodes(tx, userId)).filter((code) => isOpen(code, network, nowMs));
  const right = rightOf(services, open, shown);
  if (!right) return false;
  await upsertCode(tx, { ...right, mac: null });
  return true;
}

/**
 * Tries a code: counts a wrong one, and returns the proof of the right one, which is consumed later. After 30 wrong ones in
 * a day from a network none is right there for 24 hours. Rules: AUTH-42, AUTH-71, AUTH-73.
 */
export async function tryCode(
  services: AllServices,
  userId: string,
  { address, ...shown }: ShownCode & { readonly address: string },
): Promise<Proof | null> {
  if (!codeForm.test(shown.given)) return null;
  return services.db.transaction(async (tx) => {
    const { codes, own } = await readCodes(tx, services, { userId, address });
    const nowMs = services.clock.now();
    const { network } = own;
    const open = codes.filter((code) => isOpen(code, network, nowMs));
    if (open.length === 0 || areOff(own, nowMs)) return null;
    if (rightOf(services, open, shown)) {
      return { consume: (later: Tx) => useUpCode(later, services, { userId, network, ...shown }) };
    }
    const tried = new Map(open.map((code) => [code.network, withTry(code, network)]));
    tried.set(network, withWrongCode(tried.get(network) ?? own, nowMs));
    for (const code of tried.values()) await upsertCode(tx, code);
    return null;
  });
}

/** Makes the codes wrong of a user who is deleted, or whose mail goes elsewhere from now on. */
export async function forgetCodes(tx: Tx, userId: string): Promise<void> {
  await updateUsedUp(tx, userId);
}

/** Returns whether a caller gets no codes for a user because too many were wrong. Rule: AUTH-71. */
export async function areCodesOff(read: Reader, services: Pick<Services, 'clock'>, asking: Asking): Promise<boolean> {
  const { own } = await readCodes(read, services, asking);
  return areOff(own, services.clock.now());
}

/** Forgets the wrong codes of a user, who gets codes again, and whose last ones may be tried again. */
export async function forgetWrongCodes(tx: Tx, userId: string): Promise<void> {
  await updateNoneWrong(tx, userId);
}

/** Forgets codes and wrong codes that count no longer; returns how many rows. */
export function pruneCodes({ db, clock }: Pick<AllServices, 'db' | 'clock'>): Promise<number> {
  return db.transaction((tx) => deleteOldCodes(tx, clock.now()));
}
