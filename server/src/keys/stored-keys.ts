import { randomUUID } from 'node:crypto';
import { exportJWK, generateKeyPair } from 'jose';
import { z } from 'zod';
import { day, minute } from '../base/clock.ts';

const storedKey = z.object({
  kty: z.literal('OKP'),
  crv: z.literal('Ed25519'),
  x: z.string(),
  d: z.string(),
  kid: z.string(),
  /** Time when it begins to sign, in milliseconds since 1970; absent for the first key. */
  signsFrom: z.number().optional(),
});

const storedKeys = z.object({ keys: z.array(storedKey).min(1) });

/** A private signing key as it is kept. */
export type StoredKey = z.infer<typeof storedKey>;

/**
 * Delay after which a new key begins to sign: until then every node publishes it, and clients that verify by the
 * published keys can fetch it before the first token that needs it. Rule: AUTH-59.
 */
export const publishedAheadMs = 2 * minute;
/** Longer than anything lives that is signed or sealed, but for personal access tokens. */
const keptMsMin = 31 * day;
/** A token that is signed at the last instant may be stored a little later. */
const storedLateMs = 5 * minute;

/** The keys, the newest first; `null` where the content is none of ours. */
export function parseStoredKeys(content: string): readonly StoredKey[] | null {
  try {
    return storedKeys.parse(JSON.parse(content)).keys;
  } catch {
    return null;
  }
}

/** Keys as they are kept. */
export function storedContent(keys: readonly StoredKey[]): string {
  return `${JSON.stringify({ keys })}\n`;
}

/** A new private key. */
export async function makeKey(): Promise<StoredKey> {
  const { privateKey } = await generateKeyPair('Ed25519', { extractable: true });
  return storedKey.parse({ ...(await exportJWK(privateKey)), kid: randomUUID() });
}

/** Returns the index of the key that signs at a time: the newest that has begun, or else the oldest. */
export function placeOfSigner(keys: readonly Pick<StoredKey, 'signsFrom'>[], nowMs: number): number {
  const begun = keys.findIndex(({ signsFrom = 0 }) => signsFrom <= nowMs);
  return begun === -1 ? keys.length - 1 : begun;
}

/**
 * The keys that a rotation keeps: those whose last token may not have ended yet. Rule: AUTH-59.
 * @param oldestTokenMs when the oldest personal access token was made that has not ended; `null`: there is none
 */
export function neededKeys(
  keys: readonly StoredKey[],
  { nowMs, oldestTokenMs }: { readonly nowMs: number; readonly oldestTokenMs: number | null },
): readonly StoredKey[] {
  return keys.filter((_, place) => {
    const endedMs = keys[place - 1]?.signsFrom;
    if (endedMs === undefined || endedMs > nowMs - keptMsMin) return true;
    return oldestTokenMs !== null && oldestTokenMs <= endedMs + storedLateMs;
  });
}
