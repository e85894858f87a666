import type { CredentialHash } from '../../base/secret.ts';
import type { Reader, Tx } from '../../db/database.ts';
import type { NewRow } from '../../db/schema/tables.ts';
import type { PresentToken } from './imported-token.ts';
import type { MadeToken } from './token-circles.ts';

/** Tokens that have one of some ids or one of some hashes. */
export async function selectPresentTokens(
  read: Reader,
  { ids, hashes }: { readonly ids: readonly string[]; readonly hashes: readonly CredentialHash[] },
): Promise<PresentToken[]> {
  const having = (column: 'id' | 'hash', values: readonly string[]) =>
    read
      .selectFrom('personal_access_tokens')
      .where(column, 'in', values)
      .select(['id', 'hash', 'user_id as userId', 'revoked_at as revokedAt', 'expires_at as expiresAt'])
      .execute();
  return [...(await having('id', ids)), ...(await having('hash', hashes))];
}

/** Returns those ids under which a token was revoked, whether it still exists or not. */
export async function selectEndedIds(read: Reader, ids: readonly string[]): Promise<string[]> {
  const rows = await read
    .selectFrom('audit_log')
    .where('subject_id', 'in', ids)
    .where('action', '=', 'token.revoked')
    .select('subject_id')
    .execute();
  return rows.flatMap(({ subject_id: id }) => id ?? []);
}

/** What is here of tokens with some ids: owners, scopes, makers, and when they ended or will. */
export function selectTokenEnds(read: Reader, ids: readonly string[]) {
  return read
    .selectFrom('personal_access_tokens')
    .where('id', 'in', ids)
    .select(['id', 'parent_id as parentId', 'revoked_at as revokedAt', 'expires_at as expiresAt'])
    .select(['user_id as userId', 'scopes'])
    .execute();
}

/** The users among some ids, deleted ones too, and whether their data was erased. */
export async function selectOwners(read: Reader, ids: readonly string[]) {
  const rows = await read.selectFrom('users').where('id', 'in', ids).select(['id', 'erased_at as erasedAt']).execute();
  return rows.map(({ id, erasedAt }) => ({ id, isErased: erasedAt !== null }));
}

/** Adds tokens, as many as one statement takes. */
export async function insertImportedTokens(tx: Tx, rows: readonly NewRow<'personal_access_tokens'>[]): Promise<void> {
  await tx.insertInto('personal_access_tokens').values(rows).execute();
}

/** All tokens that were made by tokens. */
export async function selectMadeTokens(read: Reader): Promise<readonly MadeToken[]> {
  const rows = await read
    .selectFrom('personal_access_tokens')
    .where('parent_id', 'is not', null)
    .select(['id', 'parent_id as parentId', 'revoked_at as revokedAt'])
    .execute();
  return rows.flatMap(({ id, parentId, revokedAt }) =>
    parentId === null ? [] : [{ id, parentId, isRevoked: revokedAt !== null }],
  );
}
