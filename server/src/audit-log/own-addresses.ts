import type { Reader } from '../db/database.ts';
import type { Changes } from './changes.ts';

/** The latest record of the audit log about a user's address. */
interface AddressRecord {
  readonly userId: string;
  readonly email: string;
  readonly isOwn: boolean;
}

const addressActions = ['user.updated', 'user.email-confirmed', 'user.email-given-back'];

function emailAfter(changes: string): string | null {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what `appendAudit` wrote
  const { email } = JSON.parse(changes) as Changes;
  return typeof email?.after === 'string' ? email.after : null;
}

/**
 * The active users whose address counts as verified although the audit log says that they set it themselves and that it
 * was never confirmed since: accounts of releases that knew no verified addresses. In order of their ids. Rule: ADDRESS-12.
 */
export async function selectOwnAddresses(read: Reader): Promise<readonly { userId: string; email: string }[]> {
  const rows = await read
    .selectFrom('audit_log as a')
    .innerJoin('users as u', 'u.id', 'a.subject_id')
    .where('a.action', 'in', addressActions)
    .where('a.outcome', '=', 'success')
    .where('u.is_deleted', '=', 0)
    .where('u.recovery_email', 'is', null)
    .where((eb) => eb.or([eb('a.action', '!=', 'user.updated'), eb('a.changes', 'like', '%"email":{%')]))
    .orderBy('a.sequence')
    .select(['u.id as userId', 'u.email', 'a.action', 'a.actor_user_id as actorId', 'a.changes'])
    .execute();
  const last = new Map<string, AddressRecord>();
  for (const { userId, email, action, actorId, changes } of rows) {
    const isOwn = action === 'user.updated' && actorId === userId && emailAfter(changes) === email;
    last.set(userId, { userId, email, isOwn });
  }
  return [...last.values()].flatMap(({ userId, email, isOwn }) => (isOwn ? [{ userId, email }] : []));
}
