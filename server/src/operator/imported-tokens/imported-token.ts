import { toTimestamp } from '../../base/clock.ts';
import type { CredentialHash } from '../../base/secret.ts';
import { foldCase } from '../../text/plain-text.ts';

/** A personal access token as a dump tells of it, valid in itself. */
export interface ImportedToken {
  /** Kept. */
  readonly id: string;
  /** SHA-256 of the token without its display prefix, in base64url. */
  readonly hash: CredentialHash;
  /** Of the owner. */
  readonly userId: string;
  readonly name: string;
  readonly scopes: readonly string[];
  /** Milliseconds since 1970, like all times here. */
  readonly createdAt: number;
  /** `null`: never. */
  readonly expiresAt: number | null;
  readonly lastUsedAt: number | null;
  /** The token that made it; revoking that one revokes it. */
  readonly parentId: string | null;
  readonly revoked: { readonly at: number; readonly by: string | null; readonly reason: string } | null;
}

/** Plan for importing a token. */
export type TokenPlan =
  | { readonly what: 'add' }
  /** It ends here, as it did there. */
  | { readonly what: 'revoke' }
  | { readonly what: 'same' }
  | { readonly what: 'leave'; readonly reason: string }
  | { readonly what: 'refuse'; readonly field: string; readonly message: string };

/** A token that is here. */
export interface PresentToken {
  readonly id: string;
  readonly hash: CredentialHash;
  readonly userId: string;
  readonly revokedAt: number | null;
  readonly expiresAt: number | null;
}

/** Stored data that concerns some tokens of a dump. */
export interface Here {
  readonly byId: ReadonlyMap<string, PresentToken>;
  readonly byHash: ReadonlyMap<string, PresentToken>;
  /** Ids that were revoked here and may have been removed since. */
  readonly endedIds: ReadonlySet<string>;
  /** Possible owners, by id, and whether their data was erased. */
  readonly owners: ReadonlyMap<string, { readonly isErased: boolean }>;
  readonly nowMs: number;
  /** Tokens that ended before are kept no more. */
  readonly keptSinceMs: number;
}

function planPresent(token: ImportedToken, present: PresentToken, nowMs: number): TokenPlan {
  if (present.hash !== token.hash) return { what: 'refuse', field: '_id', message: 'belongs to another token here' };
  if (present.userId !== token.userId) return { what: 'refuse', field: 'userId', message: 'is not its owner here' };
  const counts = present.revokedAt === null && (present.expiresAt === null || present.expiresAt > nowMs);
  return counts && token.revoked ? { what: 'revoke' } : { what: 'same' };
}

/** Plans the import of a token. Rules: AUTH-40, CLI-17, CLI-20, PAT-16, PAT-32. */
export function planToken(token: ImportedToken, here: Here): TokenPlan {
  const present = here.byId.get(token.id);
  if (present) return planPresent(token, present, here.nowMs);
  if (here.byHash.has(token.hash))
    return { what: 'refuse', field: 'tokenHash', message: 'belongs to another token here' };
  const owner = here.owners.get(token.userId);
  if (!owner) return { what: 'refuse', field: 'userId', message: 'belongs to no user in the file or here' };
  if (owner.isErased) return { what: 'leave', reason: 'tokens of users whose data was erased here' };
  if (here.endedIds.has(token.id)) return { what: 'leave', reason: 'tokens that were revoked here' };
  const endedAt = Math.min(token.revoked?.at ?? Number.POSITIVE_INFINITY, token.expiresAt ?? Number.POSITIVE_INFINITY);
  if (endedAt < here.keptSinceMs) return { what: 'leave', reason: 'tokens that ended longer ago than they are kept' };
  return { what: 'add' };
}

/** The row of a token of a dump. */
export function importedTokenRow(token: ImportedToken, orgId: string) {
  return {
    id: token.id,
    hash: token.hash,
    org_id: orgId,
    user_id: token.userId,
    name: token.name,
    name_key: foldCase(token.name),
    scopes: token.scopes.join(' '),
    created_at: token.createdAt,
    expires_at: token.expiresAt,
    last_used_at: token.lastUsedAt,
    parent_id: token.parentId,
    revoked_at: token.revoked?.at ?? null,
    revoked_by: token.revoked?.by ?? null,
    revoke_reason: token.revoked?.reason ?? null,
  };
}

/** Returns the audit details of an imported token. Rule: AUDIT-9. */
export function auditedToken({ name, scopes, createdAt, expiresAt, revoked }: ImportedToken) {
  return {
    name,
    scopes,
    createdAt: toTimestamp(createdAt),
    expiresAt: expiresAt === null ? 'Never' : toTimestamp(expiresAt),
    isRevoked: revoked !== null,
  };
}
