import type { CredentialHash } from '../../base/secret.ts';
import { type Placeholders, preparedQuery, type Reader, type Tx } from '../../db/database.ts';
import { isAdministrator } from '../../db/members/membership.ts';
import type { NewRow, Tables } from '../../db/schema/tables.ts';
import type { StoredRefreshToken } from './session.ts';

/** A session token by its hash, with the state of its session, owner and organization. */
export const selectAccessToken = preparedQuery((read, { hash }: Placeholders<{ hash: CredentialHash }>) =>
  read
    .selectFrom('session_tokens as t')
    .innerJoin('sessions as s', 's.id', 't.session_id')
    .innerJoin('users as u', 'u.id', 's.user_id')
    .innerJoin('organizations as o', 'o.id', 's.org_id')
    .where('t.hash', '=', hash)
    .where('t.kind', '=', 'access')
    .select(['t.expires_at', 's.id as session_id', 's.user_id', 's.org_id', 's.created_at', 's.ended_at'])
    .select(['u.is_deleted as owner_deleted', 'o.is_deleted as org_deleted'])
    .select(isAdministrator('s.user_id').as('is_admin')),
);

/** A refresh token by its hash. */
export function selectRefreshToken(read: Reader, hash: CredentialHash): Promise<StoredRefreshToken | undefined> {
  return read
    .selectFrom('session_tokens as t')
    .innerJoin('sessions as s', 's.id', 't.session_id')
    .innerJoin('users as u', 'u.id', 's.user_id')
    .innerJoin('organizations as o', 'o.id', 's.org_id')
    .where('t.hash', '=', hash)
    .where('t.kind', '=', 'refresh')
    .select(['t.session_id', 't.expires_at', 't.rotated_at', 't.successor', 's.user_id', 's.org_id'])
    .select(['s.created_at', 's.active_at', 's.ended_at', 's.methods'])
    .select(isAdministrator('s.user_id').as('is_admin'))
    .select(['u.is_deleted as owner_deleted', 'o.is_deleted as org_deleted'])
    .executeTakeFirst();
}

/** Adds a session. */
export async function insertSession(tx: Tx, row: NewRow<'sessions'>): Promise<void> {
  await tx.insertInto('sessions').values(row).execute();
}

/** As many are removed at once. */
const batchMax = 500;

/** Adds tokens of a session. */
export async function insertSessionTokens(tx: Tx, rows: readonly NewRow<'session_tokens'>[]): Promise<void> {
  await tx.insertInto('session_tokens').values(rows).execute();
}

/** Removes the access tokens of a session but for the `kept` that end last. */
export async function deleteSuperseded(tx: Tx, sessionId: string, kept: number): Promise<void> {
  const old = tx
    .selectFrom('session_tokens')
    .where('session_id', '=', sessionId)
    .where('kind', '=', 'access')
    .orderBy('expires_at', 'desc')
    .limit(batchMax)
    .offset(kept)
    .select('hash');
  await tx.deleteFrom('session_tokens').where('hash', 'in', old).execute();
}

/** Notes that a refresh token was exchanged, and for which pair. */
export async function updateRotated(
  tx: Tx,
  hash: CredentialHash,
  { nowMs, successor }: { readonly nowMs: number; readonly successor: string },
): Promise<void> {
  await tx.updateTable('session_tokens').set({ rotated_at: nowMs, successor }).where('hash', '=', hash).execute();
}

/**
 * Deletes the encrypted results of up to `limit` exchanges before a time, of one session where it is named; returns
 * their number.
 */
export async function clearSuccessors(
  tx: Tx,
  { rotatedUntilMs, sessionId }: { readonly rotatedUntilMs: number; readonly sessionId?: string },
  limit: number,
): Promise<number> {
  let old = tx.selectFrom('session_tokens').where('successor', 'is not', null).select('hash').limit(limit);
  old = sessionId === undefined ? old : old.where('session_id', '=', sessionId);
  const { numUpdatedRows } = await tx
    .updateTable('session_tokens')
    .set({ successor: null })
    .where('hash', 'in', old.where('rotated_at', '<=', rotatedUntilMs))
    .executeTakeFirst();
  return Number(numUpdatedRows);
}

const openMax = 100;

/** Limits of open sessions: signed in to after one time, with a token that ends after another. */
export interface OpenTimes {
  readonly nowMs: number;
  readonly signedInAfterMs: number;
}

/** Returns a user's open sessions, the latest active first. */
export function selectOpenSessions(read: Reader, userId: string, { nowMs, signedInAfterMs }: OpenTimes) {
  return read
    .selectFrom('sessions as s')
    .innerJoin('session_tokens as t', 't.session_id', 's.id')
    .where('s.user_id', '=', userId)
    .where('s.ended_at', 'is', null)
    .where('s.created_at', '>', signedInAfterMs)
    .groupBy(['s.id', 's.network', 's.created_at', 's.active_at'])
    .having((eb) => eb.fn.max('t.expires_at'), '>', nowMs)
    .orderBy((eb) => eb.fn.coalesce('s.active_at', 's.created_at'), 'desc')
    .orderBy('s.id', 'desc')
    .limit(openMax)
    .select(['s.id', 's.network', 's.created_at as createdAt', 's.active_at as activeAt'])
    .select((eb) => eb.fn.max('t.expires_at').as('expiresAt'))
    .execute();
}

/** Notes that a session was refreshed. */
export async function updateActive(tx: Tx, sessionId: string, nowMs: number): Promise<void> {
  await tx.updateTable('sessions').set({ active_at: nowMs }).where('id', '=', sessionId).execute();
}

/** Why sessions are ended. */
interface End {
  readonly nowMs: number;
  readonly reason: NonNullable<Tables['sessions']['end_reason']>;
}

function ending(tx: Tx, { nowMs, reason }: End, open: OpenTimes | undefined) {
  const query = tx.updateTable('sessions').set({ ended_at: nowMs, end_reason: reason }).where('ended_at', 'is', null);
  if (!open) return query;
  return query.where('created_at', '>', open.signedInAfterMs).where(({ exists, selectFrom }) => {
    const tokens = selectFrom('session_tokens').whereRef('session_id', '=', 'sessions.id');
    return exists(tokens.where('expires_at', '>', open.nowMs).select('hash'));
  });
}

/** Ends one session of a user, where `open` is given only if it is still open; answers whether this ended it. */
export async function endSession(
  tx: Tx,
  which: { readonly userId: string; readonly sessionId: string; readonly open?: OpenTimes },
  end: End,
): Promise<boolean> {
  const query = ending(tx, end, which.open).where('user_id', '=', which.userId).where('id', '=', which.sessionId);
  const { numUpdatedRows } = await query.executeTakeFirst();
  return numUpdatedRows > 0n;
}

/**
 * Ends every session of a user, or of an organization, or those of a user that are still open; answers the ids that this
 * ended. For a user call `endEverySignIn`, which also ends what was not finished.
 */
export async function endAllSessions(
  tx: Tx,
  owner: { readonly userId: string; readonly open?: OpenTimes } | { readonly orgId: string },
  end: End,
): Promise<string[]> {
  const query =
    'userId' in owner
      ? ending(tx, end, owner.open).where('user_id', '=', owner.userId)
      : ending(tx, end, undefined).where('org_id', '=', owner.orgId);
  const rows = await query.returning('id').execute();
  return rows.map((row) => row.id);
}

/** The state of a session with that of its owner and organization, as a transaction sees it. */
export function selectSessionState(read: Reader, id: string) {
  return read
    .selectFrom('sessions as s')
    .innerJoin('users as u', 'u.id', 's.user_id')
    .innerJoin('organizations as o', 'o.id', 's.org_id')
    .where('s.id', '=', id)
    .select(['s.id as session_id', 's.user_id', 's.org_id', 's.created_at', 's.ended_at', 's.methods'])
    .select(['u.is_deleted as owner_deleted', 'o.is_deleted as org_deleted'])
    .select(isAdministrator('s.user_id').as('is_admin'))
    .executeTakeFirst();
}

/** Removes up to `limit` session tokens that ended before a time, and the sessions left without any. */
export async function deleteOldTokens(tx: Tx, beforeMs: number, limit: number): Promise<number> {
  const old = tx.selectFrom('session_tokens').where('expires_at', '<', beforeMs).select('hash').limit(limit);
  const rows = await tx.deleteFrom('session_tokens').where('hash', 'in', old).returning('session_id').execute();
  const sessionIds = [...new Set(rows.map((row) => row.session_id))];
  if (sessionIds.length > 0) {
    await tx
      .deleteFrom('sessions')
      .where('id', 'in', sessionIds)
      .where(({ not, exists, selectFrom }) =>
        not(exists(selectFrom('session_tokens').whereRef('session_id', '=', 'sessions.id').select('hash'))),
      )
      .execute();
  }
  return rows.length;
}
