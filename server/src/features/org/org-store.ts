import type { Reader, Tx } from '../../db/database.ts';
import type { StoredOrganization } from './org.ts';

/** Whether this system holds, or held, its organization. */
export async function selectOrganizationExists(read: Reader): Promise<boolean> {
  const row = await read.selectFrom('organizations').select('id').executeTakeFirst();
  return row !== undefined;
}

/** One organization, deleted or not. */
export function selectOrganization(read: Reader, id: string): Promise<StoredOrganization> {
  return read.selectFrom('organizations').where('id', '=', id).selectAll().executeTakeFirstOrThrow();
}

/**
 * Adds the organization, unless there is one already.
 * @returns whether it was added: of several at once, exactly one is
 */
export async function insertOrganization(tx: Tx, org: StoredOrganization): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await tx
    .insertInto('organizations')
    .values({ ...org, singleton: 1 })
    .onConflict((oc) => oc.column('singleton').doNothing())
    .executeTakeFirst();
  return numInsertedOrUpdatedRows === 1n;
}
