import type { Reader } from '../database.ts';

/** An active user, and where mail about the account goes. */
export interface MailTarget {
  readonly id: string;
  readonly fullName: string;
  readonly mailTo: string;
}

/** Active users and where mail about their accounts goes: to the address of before as long as a new one is unproved. */
export function mailTargets(read: Reader) {
  return read
    .selectFrom('users')
    .where('is_deleted', '=', 0)
    .select(['id', 'full_name as fullName'])
    .select((eb) => eb.fn.coalesce('recovery_email', 'email').as('mailTo'));
}

/** Returns the address for mail about an active user's account. Rule: AUTH-49. */
export function selectMailTarget(read: Reader, userId: string): Promise<MailTarget | undefined> {
  return mailTargets(read).where('id', '=', userId).executeTakeFirst();
}

/** The administrators of an organization, at most `limit`, the earliest first. */
export function selectAdministratorTargets(read: Reader, orgId: string, limit: number): Promise<MailTarget[]> {
  return mailTargets(read)
    .where('org_id', '=', orgId)
    .where('id', 'in', (eb) =>
      eb
        .selectFrom('group_members as m')
        .innerJoin('user_groups as g', 'g.id', 'm.group_id')
        .where('g.type', '=', 'admin')
        .select('m.user_id'),
    )
    .orderBy('id')
    .limit(limit)
    .execute();
}
