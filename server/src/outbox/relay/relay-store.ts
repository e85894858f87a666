import type { Selectable } from 'kysely';
import { minute } from '../../base/clock.ts';
import type { Reader, Tx } from '../../db/database.ts';
import type { DeadLetters, Relays } from '../../db/schema/event-tables.ts';

/** A subscription, as stored. */
export type StoredRelay = Selectable<Relays>;
/** An event that was set aside, or is asked for again, as the store has it. */
export type StoredDeadLetter = Selectable<DeadLetters>;

const bogusLeaseMs = 15 * minute;

/** Values that are reset as soon as something arrives, or an administrator intervenes. */
const noFailure = { attempts: 0, refusals: 0, next_try_at: null, failing_since: null, last_error: null };

/** Adds a subscription that begins after a sequence, unless it exists. */
export async function insertRelay(tx: Tx, name: string, position: number): Promise<void> {
  await tx
    .insertInto('relays')
    .values({ name, position, holder: null, held_until: 0, delivered_at: null, ...noFailure })
    .onConflict((oc) => oc.column('name').doNothing())
    .execute();
}

/** Reads one subscription. */
export function selectRelay(read: Reader, name: string): Promise<StoredRelay | undefined> {
  return read.selectFrom('relays').where('name', '=', name).selectAll().executeTakeFirst();
}

/** Reads all subscriptions that were ever used, ordered by name. */
export function selectRelays(read: Reader): Promise<StoredRelay[]> {
  return read.selectFrom('relays').orderBy('name').selectAll().execute();
}

/** The lease of a subscription: its owner and its end. */
interface Lease {
  readonly name: string;
  readonly owner: string;
  readonly nowMs: number;
  readonly untilMs: number;
}

/** Takes or renews the lease of a subscription; returns whether this node owns it. Rule: EVENT-22. */
export async function updateLease(tx: Tx, { name, owner, nowMs, untilMs }: Lease): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('relays')
    .set({ holder: owner, held_until: untilMs })
    .where('name', '=', name)
    .where((eb) =>
      eb.or([
        eb('holder', 'is', null),
        eb('holder', '=', owner),
        eb('held_until', '<=', nowMs),
        // No lease lasts this long: the clock was set back.
        eb('held_until', '>', nowMs + bogusLeaseMs),
      ]),
    )
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

/** Gives up the lease of a subscription. */
export async function deleteLease(tx: Tx, name: string, owner: string): Promise<void> {
  await tx
    .updateTable('relays')
    .set({ holder: null, held_until: 0 })
    .where('name', '=', name)
    .where('holder', '=', owner)
    .execute();
}

/** A step of the owner of the lease; it takes effect only while no one else has moved the position. */
interface Step {
  readonly name: string;
  readonly owner: string;
  /** The position at the beginning of the step. */
  readonly from: number;
}

function updateOwn(tx: Tx, { name, owner, from }: Step) {
  return tx.updateTable('relays').where('name', '=', name).where('holder', '=', owner).where('position', '=', from);
}

/**
 * Moves a subscription forward, past events that have arrived or were set aside; returns whether this node still owned
 * it.
 */
export async function updatePosition(
  tx: Tx,
  step: Step,
  { to, deliveredAt }: { readonly to: number; readonly deliveredAt: number | null },
): Promise<boolean> {
  const { numUpdatedRows } = await updateOwn(tx, step)
    .set({ position: to, ...noFailure, ...(deliveredAt === null ? {} : { delivered_at: deliveredAt }) })
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

/**
 * Records that the next event did not arrive; returns whether this node still owned the subscription, and no
 * administrator had intervened meanwhile.
 */
export async function updateFailure(
  tx: Tx,
  step: Step,
  failure: Pick<StoredRelay, 'attempts' | 'refusals' | 'next_try_at' | 'failing_since' | 'last_error'>,
): Promise<boolean> {
  const { numUpdatedRows } = await updateOwn(tx, step)
    .where('attempts', '=', failure.attempts - 1)
    .set(failure)
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

/** Makes a subscription retry at once, whatever failed before. */
export async function updateRetryNow(tx: Tx, name: string): Promise<void> {
  await tx.updateTable('relays').set(noFailure).where('name', '=', name).execute();
}

/** Moves a subscription to continue after a sequence, and to try at once; returns whether it exists. Rule: EVENT-10. */
export async function updateReplay(tx: Tx, name: string, after: number): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('relays')
    .set({ position: after, ...noFailure })
    .where('name', '=', name)
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

/** Deletes a subscription with its dead letters. */
export async function deleteRelay(tx: Tx, name: string): Promise<void> {
  // First: a node that is setting an event aside holds a lock on this row.
  await tx.deleteFrom('relays').where('name', '=', name).execute();
  await tx.deleteFrom('dead_letters').where('relay', '=', name).execute();
}

/** Adds an event that is set aside, or asked for again; one that is there already takes the new state. */
export async function upsertDeadLetter(tx: Tx, deadLetter: StoredDeadLetter): Promise<void> {
  const { attempts, last_error, requeued_at } = deadLetter;
  await tx
    .insertInto('dead_letters')
    .values(deadLetter)
    .onConflict((oc) => oc.columns(['relay', 'sequence']).doUpdateSet({ attempts, last_error, requeued_at }))
    .execute();
}

/** Returns the first requeued events of a subscription. */
export function selectRequeued(read: Reader, relay: string, limit: number): Promise<StoredDeadLetter[]> {
  return read
    .selectFrom('dead_letters')
    .where('relay', '=', relay)
    .where('requeued_at', 'is not', null)
    .orderBy('sequence')
    .limit(limit)
    .selectAll()
    .execute();
}

/** Returns the sequence of the first requeued event of each subscription that has one. */
export async function selectFirstRequeued(read: Reader): Promise<ReadonlyMap<string, number>> {
  const rows = await read
    .selectFrom('dead_letters')
    .where('requeued_at', 'is not', null)
    .groupBy('relay')
    .select((eb) => ['relay', eb.fn.min('sequence').as('sequence')] as const)
    .execute();
  return new Map(rows.map(({ relay, sequence }) => [relay, sequence]));
}

/** Returns a page of dead letters, by subscription and sequence; `total` is their number. */
export async function selectDeadLetters(
  read: Reader,
  { relay, offset, limit }: { readonly relay: string | undefined; readonly offset: number; readonly limit: number },
) {
  const all = read.selectFrom('dead_letters');
  const wanted = relay === undefined ? all : all.where('relay', '=', relay);
  const { total } = await wanted.select((eb) => eb.fn.countAll<number>().as('total')).executeTakeFirstOrThrow();
  const deadLetters = await wanted
    .orderBy('relay')
    .orderBy('sequence')
    .offset(offset)
    .limit(limit)
    .selectAll()
    .execute();
  return { total, letters: deadLetters };
}

/** Returns the number of dead letters of each subscription; those without any are absent. */
export async function countDeadLetters(read: Reader): Promise<ReadonlyMap<string, number>> {
  const rows = await read
    .selectFrom('dead_letters')
    .where('requeued_at', 'is', null)
    .groupBy('relay')
    .select((eb) => ['relay', eb.fn.countAll<number>().as('count')] as const)
    .execute();
  return new Map(rows.map(({ relay, count }) => [relay, count]));
}

/**
 * Requeues dead letters: those with these ids, of a subscription, or all. Returns their number. Their subscriptions
 * retry at once. Rule: EVENT-23.
 */
export async function updateRequeued(
  tx: Tx,
  {
    ids,
    relay,
    nowMs,
  }: {
    readonly ids?: readonly string[] | undefined;
    readonly relay?: string | undefined;
    readonly nowMs: number;
  },
): Promise<number> {
  let query = tx.updateTable('dead_letters').set({ requeued_at: nowMs }).where('requeued_at', 'is', null);
  if (ids) query = query.where('id', 'in', ids);
  if (relay !== undefined) query = query.where('relay', '=', relay);
  const { numUpdatedRows } = await query.executeTakeFirst();
  const asked = tx.selectFrom('dead_letters').where('requeued_at', '=', nowMs).select('relay');
  if (numUpdatedRows > 0n) await tx.updateTable('relays').set(noFailure).where('name', 'in', asked).execute();
  return Number(numUpdatedRows);
}

/** Notes that an event did not arrive this time either: it is dead again. */
export async function updateDeadLetterFailed(
  tx: Tx,
  id: string,
  { attempts, reason }: { readonly attempts: number; readonly reason: string },
): Promise<void> {
  await tx
    .updateTable('dead_letters')
    .set({ attempts, last_error: reason, requeued_at: null })
    .where('id', '=', id)
    .execute();
}

/** Deletes a dead letter; returns whether it existed. */
export async function deleteDeadLetterRow(tx: Tx, id: string): Promise<boolean> {
  const { numDeletedRows } = await tx.deleteFrom('dead_letters').where('id', '=', id).executeTakeFirst();
  return numDeletedRows === 1n;
}
