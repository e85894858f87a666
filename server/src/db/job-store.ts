import type { Database } from './database.ts';

/**
 * Claims a job that is due for the node that asks first. The node that gets `true` runs it, and no other does until it
 * is due again. If that node dies half way, another one starts it over the next time. Rule: NODE-6.
 */
export async function claimJob(
  { read, transaction }: Pick<Database, 'read' | 'transaction'>,
  name: string,
  { nowMs, everyMs }: { readonly nowMs: number; readonly everyMs: number },
): Promise<boolean> {
  const known = await read.selectFrom('jobs').where('name', '=', name).select('due_at').executeTakeFirst();
  // It is never due so late: the clock was set back.
  if (known && known.due_at > nowMs && known.due_at <= nowMs + everyMs) return false;
  return transaction(async (tx) => {
    await tx
      .insertInto('jobs')
      .values({ name, due_at: 0 })
      .onConflict((oc) => oc.column('name').doNothing())
      .execute();
    const { numUpdatedRows } = await tx
      .updateTable('jobs')
      .set({ due_at: nowMs + everyMs })
      .where('name', '=', name)
      .where((eb) => eb.or([eb('due_at', '<=', nowMs), eb('due_at', '>', nowMs + everyMs)]))
      .executeTakeFirst();
    return numUpdatedRows === 1n;
  });
}
