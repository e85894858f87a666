import { setImmediate } from 'node:timers/promises';
import type { HeldCredential } from '../../access/principal.ts';
import { appendAudit } from '../../audit/audit-log.ts';
import { day } from '../../clock.ts';
import type { Config } from '../../config/config.ts';
import { batchRows, removeInBatches } from '../../db/batches.ts';
import type { Tx } from '../../db/database.ts';
import type { CredentialHash } from '../../secret.ts';
import type { Services } from '../../services.ts';
import { effectiveScopes } from './token.ts';
import { deleteEndedTokens, selectTokenByHash, selectTokenState, updateLastUsed } from './token-store.ts';

type TokenState = NonNullable<Awaited<ReturnType<typeof selectTokenState>>>;

function toHeld(row: TokenState, config: Config): HeldCredential {
  const ownerGone = row.owner_deleted === 1 || row.org_deleted === 1;
  const revoked = row.revoked_at === null ? null : 'revoked';
  return {
    ended: ownerGone ? 'ownerGone' : revoked,
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
export async function findToken(services: Services, hash: CredentialHash): Promise<HeldCredential | null> {
  const row = await services.db.first(selectTokenByHash, { hash });
  return row ? toHeld(row, services.config) : null;
}

/** Looks a token up again, by its id, as a transaction sees it. */
export async function findTokenAgain(config: Config, tx: Tx, id: string): Promise<HeldCredential | null> {
  const row = await selectTokenState(tx, id);
  return row ? toHeld(row, config) : null;
}

/** Writes when tokens were last used, by token id. */
export async function storeLastUsed({ db }: Services, uses: ReadonlyMap<string, number>): Promise<void> {
  const all = [...uses];
  for (let start = 0; start < all.length; start += batchRows) {
    await db.transaction((tx) => updateLastUsed(tx, all.slice(start, start + batchRows)));
    await setImmediate();
  }
}

/**
 * Removes tokens that ended longer ago than they are kept. In batches, so that nobody waits for long. Rule: PAT-32.
 * @returns how many were removed
 */
export async function pruneTokens(services: Services): Promise<number> {
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
