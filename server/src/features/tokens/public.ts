import { randomBytes } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import type { CredentialRecord, Principal } from '../../access/principal.ts';
import { appendAudit } from '../../audit-log/audit-log.ts';
import { day } from '../../base/clock.ts';
import { ApiError } from '../../base/errors.ts';
import type { Origin } from '../../base/origin.ts';
import { type CredentialHash, hashCredential, type Secret } from '../../base/secret.ts';
import type { Config } from '../../config/config.ts';
import { batchRows, removeInBatches } from '../../db/batches.ts';
import type { Reader, Tx } from '../../db/database.ts';
import type { User } from '../../db/members/users.ts';
import type { AllServices, Services } from '../../services.ts';
import { foldCase, plainText } from '../../text/plain-text.ts';
import { auditedRevocation, effectiveScopes, toAdminTokenItem } from './token.ts';
import { type IssuingServices, issueToken } from './token-actions.ts';
import {
  countTokens,
  deleteEndedTokens,
  insertTokens,
  revokeAllTokens,
  revokeFamily,
  selectRevocable,
  selectTokenByHash,
  selectTokenPage,
  selectTokenState,
  type TokenFilter,
  updateLastUsed,
} from './token-store.ts';

type WritingServices = Pick<Services, 'clock' | 'newId'> & {
  readonly metrics: Pick<Services['metrics'], 'countActivity'>;
};
type TokenState = NonNullable<Awaited<ReturnType<typeof selectTokenState>>>;

function toRecord(row: TokenState, config: Config): CredentialRecord {
  const ownerGone = row.owner_deleted === 1 || row.org_deleted === 1;
  const revoked = row.revoked_at === null ? null : 'revoked';
  return {
    invalidReason: ownerGone ? 'ownerGone' : revoked,
    expiresAtMs: row.expires_at,
    principal: {
      kind: 'token',
      tokenId: row.id,
      userId: row.user_id,
      orgId: row.org_id,
      isAdmin: Boolean(row.is_admin),
      scopes: effectiveScopes(row.scopes, config.scopes.names),
      expiresAtMs: row.expires_at,
    },
  };
}

/** Looks a personal access token up for verification. Rules: AUTH-24, AUTH-25, SCOPE-9. */
export async function findToken(services: Services, hash: CredentialHash): Promise<CredentialRecord | null> {
  const row = await services.db.first(selectTokenByHash, { hash });
  return row ? toRecord(row, services.config) : null;
}

/** Looks a token up again, by its id, inside a transaction as that sees it. */
export async function findTokenAgain(config: Config, read: Reader, id: string): Promise<CredentialRecord | null> {
  const row = await selectTokenState(read, id);
  return row ? toRecord(row, config) : null;
}

/**
 * Revokes every token of a user, or of an organization: of those that come back after being deleted, and where it is asked for.
 * Rules: AUTH-40, CLI-8, SESSION-2, SESSION-9.
 * @param by who does it; `null`: the operator
 * @returns how many tokens this ended
 */
export async function revokeTokensOf(
  tx: Tx,
  services: WritingServices,
  end: {
    readonly owner: { readonly userId: string } | { readonly orgId: string };
    readonly orgId: string;
    readonly by: Principal | { readonly userId: string } | null;
    readonly reason: string;
    readonly origin: Origin;
  },
): Promise<number> {
  const { owner, orgId, by, reason, origin } = end;
  const revokedBy = by?.userId ?? null;
  const revoked = await revokeAllTokens(tx, owner, { revokedBy, reason, nowMs: services.clock.now() });
  for (let start = 0; start < revoked.length; start += batchRows) {
    const records = revoked.slice(start, start + batchRows).map((token) => ({
      ...auditedRevocation(token),
      orgId,
      actor: by,
      origin,
      details: { reason },
    }));
    await appendAudit(tx, services, ...records);
  }
  return revoked.length;
}

/** Writes when tokens were last used, by token id. */
export async function storeLastUsed({ db }: AllServices, uses: ReadonlyMap<string, number>): Promise<void> {
  // In one order for all nodes, so that none waits for one that waits for it.
  const all = [...uses].sort(([one], [other]) => (one < other ? -1 : 1));
  for (let start = 0; start < all.length; start += batchRows) {
    await db.sideTransaction((tx) => updateLastUsed(tx, all.slice(start, start + batchRows)));
    await setImmediate();
  }
}

/**
 * Removes tokens that ended longer ago than they are kept. In batches, so that others wait briefly. Rule: PAT-32.
 * @returns the number of removed tokens
 */
export async function pruneTokens(services: AllServices): Promise<number> {
  const { db, clock, config } = services;
  const beforeMs = clock.now() - config.tokenRetentionDays * day;
  return removeInBatches(() =>
    db.transaction(async (tx) => {
      const deleted = await deleteEndedTokens(tx, beforeMs, batchRows);
      if (deleted > 0) {
        await appendAudit(tx, services, {
          action: 'tokens.pruned',
          orgId: null,
          actor: null,
          subjectId: null,
          origin: { requestId: 'retention', network: 'local' },
          details: { count: deleted },
        });
      }
      return deleted;
    }),
  );
}

/** Gives many users a token each that no one holds: no one knows the token of its hash. For filling a store. */
export async function addUnusableTokens(
  tx: Tx,
  { clock, newId }: Pick<Services, 'clock' | 'newId'>,
  input: {
    readonly orgId: string;
    readonly userIds: readonly string[];
    readonly name: string;
    readonly scopes: string;
  },
): Promise<void> {
  const { orgId, userIds, name, scopes } = input;
  const nowMs = clock.now();
  const rows = userIds.map((userId) => ({
    id: newId(),
    hash: hashCredential(randomBytes(32).toString('base64url')),
    org_id: orgId,
    user_id: userId,
    name,
    name_key: foldCase(name),
    scopes,
    created_at: nowMs,
    expires_at: nowMs + 365 * day,
  }));
  for (let start = 0; start < rows.length; start += batchRows) {
    await insertTokens(tx, rows.slice(start, start + batchRows));
  }
}

/**
 * Issues a token for a user on the operator's request, with every scope that may be granted.
 * @returns the raw token, which is not stored
 */
export function issueTokenFor(
  services: IssuingServices & Pick<AllServices, 'db'>,
  owner: User,
  { name, lifetimeMs, origin }: { readonly name: string; readonly lifetimeMs: number; readonly origin: Origin },
): Promise<Secret> {
  const createdAt = Math.floor(services.clock.now() / 1_000) * 1_000;
  const scopes = [...services.config.scopes.names];
  return issueToken(
    services,
    { id: services.newId(), name, scopes, createdAt, expiresAt: createdAt + lifetimeMs, parentId: null },
    { owner, actor: null, origin, scopesDefaulted: true, write: (work) => services.db.transaction(work) },
  );
}

/** Reason of a revocation, as the revoking user gives it; empty: none. Rule: PAT-15. */
export const revokeReason = plainText({ min: 0, max: 500 });

/**
 * Revokes a token and its descendants, at once and for good; throws `notFound` where there is no active one. Rules:
 * PAT-14, PAT-16, SCOPE-24.
 * @param wish whose tokens may be revoked: `ownerId` `null`: any user's. `actor` `null`: the operator
 * @returns the number of revoked tokens
 */
export async function revokeToken(
  tx: Tx,
  services: WritingServices,
  input: {
    readonly tokenId: string;
    readonly orgId: string;
    readonly ownerId: string | null;
    readonly reason: string;
    readonly actor: Principal | null;
    readonly origin: Origin;
  },
): Promise<number> {
  const { tokenId, orgId, ownerId, reason, actor, origin } = input;
  const nowMs = services.clock.now();
  if (!(await selectRevocable(tx, { id: tokenId, orgId, ownerId, nowMs }))) throw new ApiError('notFound');
  const revoked = await revokeFamily(tx, { id: tokenId, revokedBy: actor?.userId ?? null, reason, nowMs });
  const records = revoked.map((token) => ({
    ...auditedRevocation(token),
    orgId,
    actor,
    origin,
    details: token.id === tokenId ? { reason } : { reason, descendsFrom: tokenId },
  }));
  await appendAudit(tx, services, ...records);
  return revoked.length;
}

/** Returns a page of all users' tokens as administrators see them, newest first, and their total number. */
export async function listTokens(
  read: Reader,
  filter: TokenFilter,
  page: { readonly offset: number; readonly limit: number },
) {
  const total = await countTokens(read, filter);
  const tokens = await selectTokenPage(read, filter, { ...page, total });
  return { total, tokens: tokens.map(toAdminTokenItem) };
}
