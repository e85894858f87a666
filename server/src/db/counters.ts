import type { Reader, Tx } from './database.ts';

/** The counters: slugs start at 1001, sequences and reloads of the configuration at 1. */
export type CounterName = 'org' | 'user' | 'usergroup' | 'event' | 'audit' | 'reload';

const startOf: Record<CounterName, number> = { org: 1000, user: 1000, usergroup: 1000, event: 0, audit: 0, reload: 0 };

/**
 * Takes the next `count` numbers of a counter and returns the first. The numbers belong to the transaction: when it
 * fails they are not used up, and other transactions wait for its end before they take any, so numbers follow commit
 * order.
 */
export async function takeNumbers(tx: Tx, name: CounterName, count = 1): Promise<number> {
  const { value } = await tx
    .insertInto('counters')
    .values({ name, value: startOf[name] + count })
    .onConflict((oc) => oc.column('name').doUpdateSet((eb) => ({ value: eb('counters.value', '+', count) })))
    .returning('value')
    .executeTakeFirstOrThrow();
  return value - count + 1;
}

/** The last number that was taken of a counter; 0 before the first. */
export async function readCounter(read: Reader, name: CounterName): Promise<number> {
  const row = await read.selectFrom('counters').where('name', '=', name).select('value').executeTakeFirst();
  return row?.value ?? 0;
}

/** A slug such as `user-1001`, unique in the system. Rule: STORE-3. */
export async function nextSlug(tx: Tx, kind: 'org' | 'user' | 'usergroup'): Promise<string> {
  return `${kind}-${await takeNumbers(tx, kind)}`;
}
