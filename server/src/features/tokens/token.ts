import { z } from 'zod';
import { toTimestamp } from '../../base/clock.ts';
import { ApiError, refuseScope } from '../../base/errors.ts';
import { components, idResponse, timestamp } from '../../http/schemas.ts';
import { emailResponse } from '../../text/email-address.ts';

/** Shown for a token that never expires. Rule: PAT-12. */
const never = 'Never';

/** Expiry of a token, as returned. */
export const expiry = z.string().meta({ description: 'A timestamp, or the word Never' });

/** An item of the owner's list, as it goes out. Rule: PAT-10. */
export const tokenItem = z.object({
  id: idResponse,
  name: z.string(),
  scopes: z.array(z.string()),
  createdAt: timestamp,
  expiresAt: expiry,
  lastUsedAt: timestamp.nullable(),
});
components.add(tokenItem, { id: 'PersonalAccessToken' });

/** An item of the administrator's list, as it goes out. Rule: PAT-20. */
export const adminTokenItem = tokenItem.extend({
  userId: idResponse,
  ownerEmail: emailResponse,
  ownerFullName: z.string(),
  ownerDeleted: z.boolean(),
  revokedAt: timestamp.optional(),
  revokedBy: idResponse.optional(),
  revokeReason: z.string().optional(),
});
components.add(adminTokenItem, { id: 'OwnedPersonalAccessToken' });

/** A token as the store has it, without its hash. */
export interface StoredToken {
  readonly id: string;
  readonly name: string;
  /** Space-separated. */
  readonly scopes: string;
  readonly createdAt: number;
  /** Milliseconds since 1970; `null`: never. */
  readonly expiresAt: number | null;
  readonly lastUsedAt: number | null;
}

/** A stored token with what only administrators see. */
export interface StoredTokenWithOwner extends StoredToken {
  readonly userId: string;
  readonly ownerEmail: string;
  readonly ownerFullName: string;
  readonly ownerDeleted: number;
  readonly revokedAt: number | null;
  readonly revokedBy: string | null;
  readonly revokeReason: string | null;
}

/** An expiry as it is shown: a timestamp, or the word `Never`. */
export function toExpiry(expiresAtMs: number | null): string {
  return expiresAtMs === null ? never : toTimestamp(expiresAtMs);
}

/** An item of the owner's list. Rule: PAT-10. */
export function toTokenItem(token: StoredToken) {
  return {
    id: token.id,
    name: token.name,
    scopes: token.scopes.split(' '),
    createdAt: toTimestamp(token.createdAt),
    expiresAt: toExpiry(token.expiresAt),
    lastUsedAt: token.lastUsedAt === null ? null : toTimestamp(token.lastUsedAt),
  };
}

/** An item of the administrator's list. Rules: PAT-20, PAT-23. */
export function toAdminTokenItem(token: StoredTokenWithOwner) {
  return {
    ...toTokenItem(token),
    userId: token.userId,
    ownerEmail: token.ownerEmail,
    ownerFullName: token.ownerFullName,
    ownerDeleted: token.ownerDeleted === 1,
    ...(token.revokedAt === null
      ? {}
      : {
          revokedAt: toTimestamp(token.revokedAt),
          revokedBy: token.revokedBy ?? undefined,
          revokeReason: token.revokeReason ?? undefined,
        }),
  };
}

/** The scopes that a token still has: those granted that the instance still grants. Rule: SCOPE-9. */
export function effectiveScopes(granted: string, grantable: ReadonlySet<string>): ReadonlySet<string> {
  return new Set(granted.split(' ').filter((name) => grantable.has(name)));
}

/** Unknown scopes that the error names, at most. */
const namedMax = 10;

/**
 * Returns the scopes of a new token; if none are requested, all that may be passed on. Throws `scopeNotGrantable` for
 * those that the instance does not grant, `scopeMissing` for those that the calling token lacks. Rules: PAT-5, PAT-6,
 * SCOPE-22.
 * @param passable the scopes that the caller may pass on, within the grantable ones
 */
export function scopesFor(
  asked: readonly string[] | undefined,
  grantable: ReadonlySet<string>,
  passable: ReadonlySet<string>,
): string[] {
  if (!asked) return [...passable];
  const wanted = [...new Set(asked)];
  const unknown = wanted.filter((name) => !grantable.has(name));
  if (unknown.length > 0) {
    throw new ApiError('scopeNotGrantable', { params: { scopes: unknown.slice(0, namedMax).join(' ') } });
  }
  const beyond = wanted.filter((name) => !passable.has(name));
  if (beyond.length > 0) throw refuseScope(beyond);
  return wanted;
}

const secondMs = 1_000;

/**
 * The earlier of the wanted expiry and that of the token that asks for it; whole seconds, so that the claim inside the
 * token says the same. Rule: SCOPE-23.
 * @param wantedMs milliseconds since 1970; `null`: never
 */
export function capExpiry(wantedMs: number | null, creatorMs: number | null): number | null {
  if (wantedMs === null) return creatorMs;
  const whole = Math.floor(wantedMs / secondMs) * secondMs;
  return creatorMs === null ? whole : Math.min(whole, creatorMs);
}

/** Returns the claims of a token; times in seconds, as RFC 7519 has them. Rules: PAT-27, PAT-28. */
export function tokenClaims(
  token: {
    readonly id: string;
    readonly scopes: readonly string[];
    readonly createdAt: number;
    readonly expiresAt: number | null;
    readonly userId: string;
    readonly orgId: string;
    readonly fullName: string;
  },
  issuer: string,
) {
  const seconds = (ms: number) => Math.floor(ms / secondMs);
  return {
    userId: token.userId,
    orgId: token.orgId,
    fullName: token.fullName,
    scope: token.scopes.join(' '),
    client_id: `pat-system:${token.orgId}`,
    tokenType: 'oauth',
    jti: token.id,
    iat: seconds(token.createdAt),
    iss: issuer,
    ...(token.expiresAt === null ? {} : { exp: seconds(token.expiresAt) }),
  };
}

/** Returns the audit details of a revoked token. Rule: AUDIT-9. */
export function auditedRevocation({ id: subjectId, ownerId }: { readonly id: string; readonly ownerId: string }) {
  const changes = { isRevoked: { before: false, after: true } };
  return { action: 'token.revoked' as const, subjectId, ownerId, changes };
}
