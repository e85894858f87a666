import type { Insertable, Selectable } from 'kysely';
import type { Database, Tx } from '../db/database.ts';
import type { LimitCounts } from '../db/schema/tables.ts';

/** The count of one key, shared by all nodes of a shared store. */
export type StoredCount = Selectable<LimitCounts>;

interface CountedAct {
  readonly key: string;
  readonly nowMs: number;
  readonly windowMs: number;
  readonly amount: number;
}

/**
 * Counts acts in one statement, in a window that is opened where none is open, and returns the new state. Like
 * everything in this file it runs outside the queue of transactions: nothing that is cached depends on it.
 */
export async function upsertAct(
  { read }: Pick<Database, 'read'>,
  { key, nowMs, windowMs, amount }: CountedAct,
): Promise<Pick<StoredCount, 'count' | 'until_at'>> {
  const untilMs = nowMs + windowMs;
  return read
    .insertInto('limit_counts')
    .values({ key, count: amount, last_at: nowMs, earlier_at: nowMs, until_at: untilMs })
    .onConflict((oc) =>
      oc.column('key').doUpdateSet((eb) => {
        const isOpen = eb.and([
          eb('limit_counts.until_at', '>', nowMs),
          // A clock that was set back must not block anyone for longer than one window.
          eb('limit_counts.until_at', '<=', untilMs),
        ]);
        return {
          count: eb
            .case()
            .when(isOpen)
            .then(eb('limit_counts.count', '+', amount))
            .else(amount)
            .end(),
          until_at: eb.case().when(isOpen).then(eb.ref('limit_counts.until_at')).else(untilMs).end(),
          last_at: nowMs,
        };
      }),
    )
    .returning(['count', 'until_at'])
    .executeTakeFirstOrThrow();
}

const nothingYet = { count: 0, last_at: 0, earlier_at: 0, until_at: 0 };

/** The second transaction waits here for the first. Keys are locked in one order by all, so there is no deadlock. */
async function lockCounts(tx: Tx, keys: readonly string[]): Promise<ReadonlyMap<string, StoredCount>> {
  const select = () => tx.selectFrom('limit_counts').where('key', 'in', keys).orderBy('key').forUpdate().selectAll();
  const there = await select().execute();
  if (there.length === keys.length) return new Map(there.map((row) => [row.key, row]));
  const missing = [...keys].sort().map((key) => ({ key, ...nothingYet }));
  await tx
    .insertInto('limit_counts')
    .values(missing)
    .onConflict((oc) => oc.column('key').doNothing())
    .execute();
  return new Map((await select().execute()).map((row) => [row.key, row]));
}

/**
 * Changes the counts of some keys under a lock. If `change` throws, they stay as they were.
 * @param change gets the present counts and returns the new ones; a key without a count is removed
 */
export async function changeCounts(
  { read }: Pick<Database, 'read'>,
  keys: readonly string[],
  change: (known: ReadonlyMap<string, StoredCount>) => readonly Insertable<LimitCounts>[],
): Promise<void> {
  await read
    .transaction()
    .setIsolationLevel('read committed')
    .execute(async (tx) => {
      const known = new Map([...(await lockCounts(tx, keys))].filter(([, { count }]) => count > 0));
      const changed = change(known);
      for (const { key, ...values } of changed) {
        await tx.updateTable('limit_counts').set(values).where('key', '=', key).execute();
      }
      const gone = keys.filter((key) => !changed.some((row) => row.key === key));
      if (gone.length > 0) await tx.deleteFrom('limit_counts').where('key', 'in', gone).execute();
    });
}

/** Removes counts that no longer block anyone and returns their number. */
export async function deleteCountsBefore(read: Database['read'], beforeMs: number): Promise<number> {
  const { numDeletedRows } = await read
    .deleteFrom('limit_counts')
    .where('until_at', '<', beforeMs)
    .where('last_at', '<', beforeMs)
    .executeTakeFirst();
  return Number(numDeletedRows);
}

/** Removes the counts whose key begins with a prefix. */
export async function deleteCountsBeginningWith({ read }: Pick<Database, 'read'>, prefix: string): Promise<void> {
  await read
    .deleteFrom('limit_counts')
    .where((eb) => eb(eb.fn<string>('substr', ['key', eb.val(1), eb.val(prefix.length)]), '=', prefix))
    .execute();
}
