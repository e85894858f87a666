import type { CredentialHash } from '../../base/secret.ts';
import { type Placeholders, preparedQuery, type Reader, type Tx } from '../../db/database.ts';
import { areAdministrators } from '../../db/members/membership.ts';
import type { NewRow } from '../../db/schema/tables.ts';
import type { StoredClient } from './service-client.ts';

/**
 * Clients that have not ended: neither deleted nor made by a personal access token that has ended. When that expires is
 * for the caller to look at.
 */
function openClients(read: Reader) {
  return read
    .selectFrom('service_clients as c')
    .leftJoin('personal_access_tokens as p', 'p.id', 'c.created_by_token')
    .leftJoin('users as u', 'u.id', 'p.user_id')
    .where('c.deleted_at', 'is', null)
    .where((eb) =>
      eb.or([
        eb('c.created_by_token', 'is', null),
        eb.and([eb('p.id', 'is not', null), eb('p.revoked_at', 'is', null), eb('u.is_deleted', '=', 0)]),
      ]),
    );
}

/** All clients that have not ended, in order of creation. */
export function selectClients(read: Reader, nowMs: number): Promise<StoredClient[]> {
  return openClients(read)
    .where((eb) => eb.or([eb('p.expires_at', 'is', null), eb('p.expires_at', '>', nowMs)]))
    .orderBy('c.id')
    .select(['c.id', 'c.name', 'c.scopes', 'c.created_at as createdAt', 'c.last_used_at as lastUsedAt'])
    .select(['c.created_by as createdBy', 'c.earlier_secret_until as earlierSecretUntil'])
    .select(areAdministrators('c.created_by', 'c.secret_by').as('areMakersAdministrators'))
    .execute();
}

/** Clients that have not ended and that some users made, or whose present secret they got, in order of creation. */
export function selectClientsOf(read: Reader, userIds: readonly string[], nowMs: number) {
  return openClients(read)
    .where((eb) => eb.or([eb('p.expires_at', 'is', null), eb('p.expires_at', '>', nowMs)]))
    .where((eb) => eb.or([eb('c.created_by', 'in', userIds), eb('c.secret_by', 'in', userIds)]))
    .orderBy('c.id')
    .select(['c.id', 'c.name', 'c.created_at as createdAt'])
    .execute();
}

/** Stored proof of a client. */
export interface ClientProof {
  readonly secretHash: string;
  /** `null`: there is none, or never was. */
  readonly earlierSecretHash: string | null;
  readonly earlierSecretUntil: number | null;
  /** Expiry of the token that created the client; `null`: never, or no token created it. */
  readonly makerExpiresAt: number | null;
}

/** One client that has not ended, with what proves it, and when what made it expires. */
export function selectClient(read: Reader, id: string, nowMs: number) {
  return openClients(read)
    .where('c.id', '=', id)
    .where((eb) => eb.or([eb('p.expires_at', 'is', null), eb('p.expires_at', '>', nowMs)]))
    .select(['c.id', 'c.name', 'c.scopes', 'c.secret_hash as secretHash', 'c.org_id as orgId'])
    .select(['c.earlier_secret_hash as earlierSecretHash', 'c.earlier_secret_until as earlierSecretUntil'])
    .select(['c.created_by_token as createdByToken', 'p.expires_at as makerExpiresAt'])
    .executeTakeFirst();
}

/** A service's token by its hash, whose client has not ended; with when the token, and what made its client, expires. */
export const selectServiceToken = preparedQuery((read, { hash }: Placeholders<{ hash: CredentialHash }>) =>
  openClients(read)
    .innerJoin('service_tokens as t', 't.client_id', 'c.id')
    .where('t.hash', '=', hash)
    .select(['t.scopes', 't.expires_at as expiresAt', 't.revoked_at as revokedAt', 't.client_id as clientId'])
    .select('p.expires_at as makerExpiresAt'),
);

/** Adds a client. */
export async function insertClient(tx: Tx, row: NewRow<'service_clients'>): Promise<void> {
  await tx.insertInto('service_clients').values(row).execute();
}

/** Ends a client. */
export async function updateClientDeleted(tx: Tx, id: string, nowMs: number): Promise<void> {
  await tx.updateTable('service_clients').set({ deleted_at: nowMs }).where('id', '=', id).execute();
}

/** Changes what proves a client. */
export async function updateClientSecret(
  tx: Tx,
  id: string,
  secret: Pick<NewRow<'service_clients'>, 'secret_hash' | 'secret_by' | 'earlier_secret_hash' | 'earlier_secret_until'>,
): Promise<void> {
  await tx.updateTable('service_clients').set(secret).where('id', '=', id).execute();
}

/** Makes the tokens of a client expire at a time, unless they do earlier. */
export async function updateTokensExpire(tx: Tx, clientId: string, atMs: number): Promise<void> {
  await tx
    .updateTable('service_tokens')
    .set({ expires_at: atMs })
    .where('client_id', '=', clientId)
    .where('expires_at', '>', atMs)
    .execute();
}

/** Adds a token, and notes that its client got one. */
export async function insertServiceToken(tx: Tx, row: NewRow<'service_tokens'>): Promise<void> {
  await tx.insertInto('service_tokens').values(row).execute();
  await tx
    .updateTable('service_clients')
    .set({ last_used_at: row.created_at })
    .where('id', '=', row.client_id)
    .execute();
}

/** Revokes a token of a client; returns whether there was one to revoke. */
export async function updateServiceTokenRevoked(
  tx: Tx,
  { hash, clientId, nowMs }: { readonly hash: CredentialHash; readonly clientId: string; readonly nowMs: number },
): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('service_tokens')
    .set({ revoked_at: nowMs })
    .where('hash', '=', hash)
    .where('client_id', '=', clientId)
    .where('revoked_at', 'is', null)
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

/** Removes up to `limit` tokens that ended before a time; returns their number. */
export async function deleteOldServiceTokens(tx: Tx, beforeMs: number, limit: number): Promise<number> {
  const old = tx.selectFrom('service_tokens').where('expires_at', '<', beforeMs).select('hash').limit(limit);
  const { numDeletedRows } = await tx.deleteFrom('service_tokens').where('hash', 'in', old).executeTakeFirst();
  return Number(numDeletedRows);
}
