import type { Reader } from './database.ts';

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
