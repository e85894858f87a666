import { appendAudit } from '../../audit-log/audit-log.ts';
import { changesBetween } from '../../audit-log/changes.ts';
import { ApiError } from '../../base/errors.ts';
import type { Origin } from '../../base/origin.ts';
import { batchRows } from '../../db/batches.ts';
import type { Reader, Tx } from '../../db/database.ts';
import { revokeToken } from '../../features/tokens/public.ts';
import type { Services } from '../../services.ts';
import { auditedToken, type ImportedToken, importedTokenRow, planToken, type TokenPlan } from './imported-token.ts';
import {
  insertImportedTokens,
  selectEndedIds,
  selectMadeTokens,
  selectOwners,
  selectPresentTokens,
  selectTokenEnds,
} from './imported-token-store.ts';
import { circlesOf } from './token-circles.ts';

type WritingServices = Pick<Services, 'clock' | 'newId'> & {
  readonly metrics: Pick<Services['metrics'], 'countActivity'>;
};

/**
 * Plans the import of some tokens, in their order; no two of them share an id or a hash. Rules: CLI-17, CLI-20.
 * @param knows whether a user who does not exist yet comes with the same dump
 */
export async function planTokens(
  read: Reader,
  input: {
    readonly tokens: readonly ImportedToken[];
    readonly nowMs: number;
    readonly keptSinceMs: number;
    readonly knows: (userIds: readonly string[]) => readonly string[];
  },
): Promise<readonly TokenPlan[]> {
  const { tokens, nowMs, keptSinceMs, knows } = input;
  const ids = tokens.map(({ id }) => id);
  const present = await selectPresentTokens(read, { ids, hashes: tokens.map(({ hash }) => hash) });
  const userIds = [...new Set(tokens.map(({ userId }) => userId))];
  const owners = [...knows(userIds).map((id) => ({ id, isErased: false })), ...(await selectOwners(read, userIds))];
  const here = {
    byId: new Map(present.map((token) => [token.id, token])),
    byHash: new Map(present.map((token) => [token.hash, token])),
    endedIds: new Set(await selectEndedIds(read, ids)),
    owners: new Map(owners.map((owner) => [owner.id, owner])),
    nowMs,
    keptSinceMs,
  };
  return tokens.map((token) => planToken(token, here));
}

/** End of a token, past or future, and the token that created it. */
interface TokenEnd {
  readonly parentId: string | null;
  /** Milliseconds since 1970; `null`: it was not revoked. */
  readonly revokedAt: number | null;
  /** Milliseconds since 1970; `null`: never. */
  readonly expiresAt: number | null;
  /** Whose it is and what it may do; `null`: its row was removed. */
  readonly grant: { readonly userId: string; readonly scopes: readonly string[] } | null;
}

/** Returns the ends of tokens with some ids, also of those that were revoked and removed since. */
export async function findTokenEnds(read: Reader, ids: readonly string[]): Promise<ReadonlyMap<string, TokenEnd>> {
  const ends = new Map<string, TokenEnd>();
  const removed = { parentId: null, revokedAt: 0, expiresAt: null, grant: null };
  for (const id of await selectEndedIds(read, ids)) ends.set(id, removed);
  for (const { id, userId, scopes, ...end } of await selectTokenEnds(read, ids)) {
    ends.set(id, { ...end, grant: { userId, scopes: scopes.split(' ') } });
  }
  return ends;
}

/** The circles of stored tokens that made each other, by the ids of their tokens; without those that are revoked. */
export async function findTokenCircles(read: Reader): Promise<readonly (readonly string[])[]> {
  return circlesOf(await selectMadeTokens(read));
}

/** Adds tokens of a dump, as they were there; ids and hashes must be free. Rules: CLI-19, CLI-20. */
export async function addImportedTokens(
  tx: Tx,
  services: WritingServices,
  {
    orgId,
    tokens,
    origin,
  }: { readonly orgId: string; readonly tokens: readonly ImportedToken[]; readonly origin: Origin },
): Promise<void> {
  for (let start = 0; start < tokens.length; start += batchRows) {
    const some = tokens.slice(start, start + batchRows);
    await insertImportedTokens(
      tx,
      some.map((token) => importedTokenRow(token, orgId)),
    );
    const records = some.map((token) => {
      const { id: subjectId, userId: ownerId } = token;
      const made = auditedToken(token);
      const about = { action: 'token.created', orgId, actor: null, subjectId, ownerId, origin } as const;
      return { ...about, details: { ...made, imported: true }, changes: changesBetween(null, made) };
    });
    await appendAudit(tx, services, ...records);
  }
}

/**
 * Revokes a token that a dump tells of as revoked, with its descendants here; one that has ended meanwhile stays as it
 * is. Rule: CLI-20.
 */
export async function revokeImportedToken(
  tx: Tx,
  services: WritingServices,
  { orgId, token, origin }: { readonly orgId: string; readonly token: ImportedToken; readonly origin: Origin },
): Promise<void> {
  const reason = token.revoked?.reason ?? '';
  try {
    await revokeToken(tx, services, { tokenId: token.id, orgId, ownerId: null, reason, actor: null, origin });
  } catch (error) {
    // It descends from one that was revoked just before.
    if (!(error instanceof ApiError && error.errorName === 'notFound')) throw error;
  }
}
