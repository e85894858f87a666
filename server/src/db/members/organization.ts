import { type Database, preparedQuery, type Reader } from '../database.ts';

/** The organization of this system, with the fields that all features use. */
export interface Organization {
  readonly id: string;
  readonly accountType: 'individual' | 'business';
  /** Its display name: the short name, or else the registered one, or else the domain. */
  readonly name: string;
}

/** The organization of this system; `undefined` while there is none, or none any more. */
export function selectActiveOrganization(read: Reader): Promise<Organization | undefined> {
  return read
    .selectFrom('organizations')
    .where('is_deleted', '=', 0)
    .select(['id', 'account_type as accountType'])
    .select((eb) => eb.fn.coalesce('short_name', 'registered_name', 'domain').as('name'))
    .executeTakeFirst();
}

/** Returns whether this system has an organization, deleted or not. */
export async function selectOrganizationExists(read: Reader): Promise<boolean> {
  const row = await read.selectFrom('organizations').select('id').executeTakeFirst();
  return row !== undefined;
}

const selectDeletedOrganization = preparedQuery((read) =>
  read.selectFrom('organizations').where('is_deleted', '=', 1).select('id'),
);

/** Returns whether the organization of this system is deleted; fast enough for every request. */
export async function isOrganizationDeleted(db: Pick<Database, 'first'>): Promise<boolean> {
  return (await db.first(selectDeletedOrganization, {})) !== undefined;
}

/** Returns whether the organization of this system is deleted, as a transaction sees it. */
export async function selectIsOrganizationDeleted(read: Reader): Promise<boolean> {
  const query = read.selectFrom('organizations').where('is_deleted', '=', 1).select('id');
  return (await query.executeTakeFirst()) !== undefined;
}
