import type { Reader } from '../db/database.ts';

const addressActions = ['user.updated', 'user.email-confirmed', 'user.email-given-back'];

/** Those of some users whose address was changed or proved here, as the audit log has it, and not by an import. Rule: ADDRESS-17. */
export async function selectLocalAddresses(read: Reader, userIds: readonly string[]): Promise<ReadonlySet<string>> {
  if (userIds.length === 0) return new Set();
  const rows = await read
    .selectFrom('audit_log')
    .where('subject_id', 'in', userIds)
    .where('action', 'in', addressActions)
    .where('outcome', '=', 'success')
    .where((eb) => eb.or([eb('action', '!=', 'user.updated'), eb('changes', 'like', '%"email":{%')]))
    .where('details', 'not like', '%"imported":true%')
    .select('subject_id')
    .distinct()
    .execute();
  return new Set(rows.flatMap(({ subject_id: id }) => id ?? []));
}
