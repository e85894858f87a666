import { randomBytes } from 'node:crypto';
import { day, hour, minute } from '../../base/clock.ts';
import { type CredentialHash, hashCredential, Secret } from '../../base/secret.ts';

/** Purpose of a link. */
export type LinkPurpose = 'invitation' | 'reset' | 'confirmation' | 'approval';

/** Lifetime of a link. Rules: ADDRESS-5, INVITE-12, PASSWORD-8. */
export const linkMs: Readonly<Record<LinkPurpose, number>> = {
  invitation: 48 * hour,
  reset: 20 * minute,
  confirmation: 48 * hour,
  approval: 48 * hour,
};
/** Time for which an ended link is distinguished from an unknown one. Rules: ERR-21, PASSWORD-12. */
export const endedLinkKeptMs = 30 * day;

/** Prefix by which it is recognized, so that logs can mask it. */
const mark = 'lkl_';
const secretBytes = 32;

/** A new secret for a link, of 256 random bits. Rule: LINK-1. */
export function createRawLinkToken(): Secret {
  return new Secret(mark + randomBytes(secretBytes).toString('base64url'));
}

/** Returns the stored hash of the secret in a link. Rule: STORE-8. */
export function linkHash(raw: Secret): CredentialHash {
  return hashCredential(raw.expose());
}

const pages: Readonly<Record<LinkPurpose, (token: string) => string>> = {
  invitation: (token) => `reset-password#token=${token}`,
  reset: (token) => `reset-password#token=${token}`,
  confirmation: (token) => `confirm-email#token=${token}`,
  approval: (token) => `confirm-email#token=${token}&step=approve`,
};

/**
 * The address of a link: the page where a password is set, or an address or its change is confirmed, or where one signs in. Rules:
 * ADDRESS-5, INVITE-11, MAIL-5.
 */
export function linkAddress(frontendUrl: string, raw: Secret | null, purpose: LinkPurpose = 'reset'): Secret {
  return new Secret(raw === null ? `${frontendUrl}/sign-in` : `${frontendUrl}/${pages[purpose](raw.expose())}`);
}

/** A link with the state of its owner. */
export interface StoredLink {
  readonly id: string;
  readonly orgId: string;
  readonly userId: string;
  readonly purpose: LinkPurpose;
  /** Milliseconds since 1970; `null`: never. */
  readonly expiresAt: number | null;
  readonly endedAt: number | null;
  readonly isOwnerGone: boolean;
  /** Whether it was shown to an administrator who is one no longer. Rule: LEAVER-9. */
  readonly isMakerGone: boolean;
  /** Of a confirmation: whether the current password is asked for. */
  readonly needsPassword: boolean;
  /** Of a confirmation: the address that it makes the owner's; `null`: the one that the owner has. */
  readonly email: string | null;
}

/** Returns the state of a link: `gone` for one that ended, `unknown` for one that is not disclosed. */
export function validateLink(link: StoredLink | undefined, nowMs: number): 'good' | 'gone' | 'unknown' {
  if (!link || link.isOwnerGone) return 'unknown';
  const endMs = Math.min(link.endedAt ?? Number.POSITIVE_INFINITY, link.expiresAt ?? Number.POSITIVE_INFINITY);
  // Not by the clock alone, which may be set back: what has ended stays so. Rule: LINK-2.
  if (link.endedAt === null && !link.isMakerGone && nowMs < endMs) return 'good';
  return nowMs < endMs + endedLinkKeptMs ? 'gone' : 'unknown';
}
