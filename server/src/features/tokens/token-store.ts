import type { ExpressionBuilder } from 'kysely';
import type { CredentialHash } from '../../base/secret.ts';
import { type Placeholders, preparedQuery, type Reader, type Tx } from '../../db/database.ts';
import { isAdministrator } from '../../db/members/membership.ts';
import { type UserSearch, userMatches } from '../../db/members/user-search.ts';
import { verifiedEmail } from '../../db/members/users.ts';
import type { NewRow, Tables } from '../../db/schema/tables.ts';
import { contains } from '../../db/search.ts';
import type { StoredToken, StoredTokenWithOwner } from './token.ts';

type TokenExpression = ExpressionBuilder<Tables, 'personal_access_tokens'>;

const shown = [
  'id',
  'name',
  'scopes',
  'created_at as createdAt',
  'expires_at as expiresAt',
  'last_used_at as lastUsedAt',
] as const;

function notExpired(eb: TokenExpression, nowMs: number) {
  return eb.or([eb('expires_at', 'is', null), eb('expires_at', '>', nowMs)]);
}

/** Tokens with the state of their owner and organization: one look decides whether a token counts. */
function tokenStates(read: Reader) {
  return read
    .selectFrom('personal_access_tokens as t')
    .innerJoin('users as u', 'u.id', 't.user_id')
    .innerJoin('organizations as o', 'o.id', 't.org_id')
    .select(['t.id', 't.user_id', 't.org_id', 't.scopes', 't.expires_at', 't.revoked_at'])
    .select(['u.is_deleted as owner_deleted', 'o.is_deleted as org_deleted'])
    .select(isAdministrator('t.user_id').as('is_admin'));
}

/** The state of a token, by its hash. */
export const selectTokenByHash = preparedQuery((read, { hash }: Placeholders<{ hash: CredentialHash }>) =>
  tokenStates(read).where('t.hash', '=', hash),
);

/** The state of a token, by its id, as a transaction sees it. */
export function selectTokenState(read: Reader, id: string) {
  return tokenStates(read).where('t.id', '=', id).executeTakeFirst();
}

/** Adds tokens, as many as one statement takes. */
export async function insertTokens(tx: Tx, rows: readonly NewRow<'personal_access_tokens'>[]): Promise<void> {
  await tx.insertInto('personal_access_tokens').values(rows).execute();
}

/** Adds a token. */
export async function insertToken(tx: Tx, row: NewRow<'personal_access_tokens'>): Promise<void> {
  await tx.insertInto('personal_access_tokens').values(row).execute();
}

/** Returns the newest active tokens of one user. Ids sort in order of creation. */
export function selectActiveTokens(
  read: Reader,
  { userId, nowMs, limit }: { userId: string; nowMs: number; limit: number },
): Promise<StoredToken[]> {
  return read
    .selectFrom('personal_access_tokens')
    .where('user_id', '=', userId)
    .where('revoked_at', 'is', null)
    .where((eb) => notExpired(eb, nowMs))
    .orderBy('id', 'desc')
    .limit(limit)
    .select(shown)
    .execute();
}

/** Filter of the administrator's list. */
export interface TokenFilter {
  readonly orgId: string;
  readonly nowMs: number;
  readonly status: 'active' | 'expired' | 'revoked' | 'all';
  readonly userId: string | undefined;
  readonly search: UserSearch | undefined;
}

function withStatus(eb: TokenExpression, { status, nowMs }: TokenFilter) {
  switch (status) {
    case 'active':
      return eb.and([eb('revoked_at', 'is', null), notExpired(eb, nowMs)]);
    case 'expired':
      return eb.and([eb('revoked_at', 'is', null), eb('expires_at', '<=', nowMs)]);
    case 'revoked':
      return eb('revoked_at', 'is not', null);
    case 'all':
      return eb.and([]);
  }
}

function filtered(read: Reader, filter: TokenFilter) {
  let query = read
    .selectFrom('personal_access_tokens')
    .where('org_id', '=', filter.orgId)
    .where((eb) => withStatus(eb, filter));
  if (filter.userId !== undefined) query = query.where('user_id', '=', filter.userId);
  const { search } = filter;
  if (!search) return query;
  return query.where((eb) =>
    eb.or([
      contains('name_key', search.text),
      eb(
        'user_id',
        'in',
        eb
          .selectFrom('users')
          .where('users.org_id', '=', filter.orgId)
          .where((user) => user.or(userMatches('users', search)))
          .select('users.id'),
      ),
    ]),
  );
}

/** Returns the number of tokens that match a filter. */
export async function countTokens(read: Reader, filter: TokenFilter): Promise<number> {
  const row = await filtered(read, filter)
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .executeTakeFirstOrThrow();
  return row.total;
}

/**
 * Returns the position of a page in the index: counted from the nearer end, because everything before it is scanned.
 */
function nearerEnd({ offset, limit, total }: { offset: number; limit: number; total: number }) {
  const count = Math.max(0, Math.min(limit, total - offset));
  const after = total - offset - count;
  return count > 0 && after < offset
    ? { direction: 'asc' as const, skipped: after, count }
    : { direction: 'desc' as const, skipped: offset, count };
}

/**
 * One page of tokens with their owners, newest first. The page is cut on the index, and only its rows are read.
 * @param place `total`: how many the filter leaves in all
 */
export function selectTokenPage(
  read: Reader,
  filter: TokenFilter,
  place: { offset: number; limit: number; total: number },
): Promise<StoredTokenWithOwner[]> {
  const { direction, skipped, count } = nearerEnd(place);
  const page = filtered(read, filter).select('id').orderBy('id', direction).limit(count).offset(skipped);
  return read
    .selectFrom('personal_access_tokens as t')
    .innerJoin('users as u', 'u.id', 't.user_id')
    .where('t.id', 'in', page)
    .orderBy('t.id', 'desc')
    .select(['t.id', 't.name', 't.scopes', 't.created_at as createdAt', 't.expires_at as expiresAt'])
    .select(['t.last_used_at as lastUsedAt', 't.user_id as userId', verifiedEmail('u').as('ownerEmail')])
    .select(['u.full_name as ownerFullName', 'u.is_deleted as ownerDeleted'])
    .select(['t.revoked_at as revokedAt', 't.revoked_by as revokedBy', 't.revoke_reason as revokeReason'])
    .execute();
}

/** Returns whether there is a token that can be revoked: in the organization, and the user's own where one is named. */
export async function selectRevocable(
  tx: Tx,
  { id, orgId, ownerId, nowMs }: { id: string; orgId: string; ownerId: string | null; nowMs: number },
): Promise<boolean> {
  let query = tx
    .selectFrom('personal_access_tokens')
    .where('id', '=', id)
    .where('org_id', '=', orgId)
    .where('revoked_at', 'is', null)
    .where((eb) => notExpired(eb, nowMs))
    .select('id');
  if (ownerId !== null) query = query.where('user_id', '=', ownerId);
  return (await query.executeTakeFirst()) !== undefined;
}

/** A token that was revoked, and whose it is. */
interface RevokedToken {
  readonly id: string;
  readonly ownerId: string;
}

/**
 * Revokes a token and everything that descends from it; answers those that this ended. `union`, not `union all`: it drops what
 * it has met before, so that it also ends where stored tokens descend from each other in a circle. Rule: CRED-12.
 */
export function revokeFamily(
  tx: Tx,
  { id, revokedBy, reason, nowMs }: { id: string; revokedBy: string | null; reason: string; nowMs: number },
): Promise<RevokedToken[]> {
  return tx
    .withRecursive('family(id)', (db) =>
      db
        .selectFrom('personal_access_tokens')
        .where('id', '=', id)
        .select('id')
        .union(
          db
            .selectFrom('personal_access_tokens as child')
            .innerJoin('family', 'family.id', 'child.parent_id')
            .select('child.id'),
        ),
    )
    .updateTable('personal_access_tokens')
    .set({ revoked_at: nowMs, revoked_by: revokedBy, revoke_reason: reason })
    .where('revoked_at', 'is', null)
    .where((eb) => notExpired(eb, nowMs))
    .where('id', 'in', (eb) => eb.selectFrom('family').select('family.id'))
    .returning(['id', 'user_id as ownerId'])
    .execute();
}

/** Revokes all active tokens of a user, or of an organization; returns them. */
export function revokeAllTokens(
  tx: Tx,
  owner: { readonly userId: string } | { readonly orgId: string },
  { revokedBy, reason, nowMs }: { revokedBy: string | null; reason: string; nowMs: number },
): Promise<RevokedToken[]> {
  const [column, id] = 'userId' in owner ? (['user_id', owner.userId] as const) : (['org_id', owner.orgId] as const);
  return tx
    .updateTable('personal_access_tokens')
    .set({ revoked_at: nowMs, revoked_by: revokedBy, revoke_reason: reason })
    .where(column, '=', id)
    .where('revoked_at', 'is', null)
    .where((eb) => notExpired(eb, nowMs))
    .returning(['id', 'user_id as ownerId'])
    .execute();
}

/** Moves the times of last use forward, never back. */
export async function updateLastUsed(tx: Tx, uses: readonly (readonly [string, number])[]): Promise<void> {
  for (const [id, usedAt] of uses) {
    await tx
      .updateTable('personal_access_tokens')
      .set({ last_used_at: usedAt })
      .where('id', '=', id)
      .where((eb) => eb.or([eb('last_used_at', 'is', null), eb('last_used_at', '<', usedAt)]))
      .execute();
  }
}

/** Removes up to `limit` tokens that ended before a time; returns their number. */
export async function deleteEndedTokens(tx: Tx, beforeMs: number, limit: number): Promise<number> {
  const ended = tx
    .selectFrom('personal_access_tokens')
    .where((eb) => eb.or([eb('revoked_at', '<', beforeMs), eb('expires_at', '<', beforeMs)]))
    .select('id')
    .limit(limit);
  const { numDeletedRows } = await tx.deleteFrom('personal_access_tokens').where('id', 'in', ended).executeTakeFirst();
  return Number(numDeletedRows);
}
