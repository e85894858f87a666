import { type Database, hotQuery, type Reader } from '../database.ts';

/** The organization of this system as everybody's code sees it. */
export interface Organization {
  readonly id: string;
  readonly accountType: 'individual' | 'business';
  /** What people call it: its short name, or else the registered one, or else its domain. */
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

/** Whether this system holds, or held, its organization. */
export async function selectOrganizationExists(read: Reader): Promise<boolean> {
  const row = await read.selectFrom('organizations').select('id').executeTakeFirst();
  return row !== undefined;
}

const selectDeletedOrganization = hotQuery((read) =>
  read.selectFrom('organizations').where('is_deleted', '=', 1).select('id'),
);

/** Whether the organization of this system is deleted; for the path of every request. */
export async function isOrganizationDeleted(db: Pick<Database, 'first'>): Promise<boolean> {
  return (await db.first(selectDeletedOrganization, {})) !== undefined;
}

/** Whether the organization of this system is deleted, as a transaction sees it. */
export async function selectIsOrganizationDeleted(read: Reader): Promise<boolean> {
  const query = read.selectFrom('organizations').where('is_deleted', '=', 1).select('id');
  return (await query.executeTakeFirst()) !== undefined;
}
