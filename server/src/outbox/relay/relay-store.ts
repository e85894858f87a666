import type { Selectable } from 'kysely';
import { minute } from '../../base/clock.ts';
import type { Reader, Tx } from '../../db/database.ts';
import type { DeadLetters, Relays } from '../../db/schema/event-tables.ts';

/** One way out, as the store has it. */
export type StoredRelay = Selectable<Relays>;
/** An event that was set aside, or is asked for again, as the store has it. */
export type StoredLetter = Selectable<DeadLetters>;

const bogusHoldMs = 15 * minute;

/** What is forgotten as soon as something arrives, or somebody sees to it. */
const well = { attempts: 0, refusals: 0, next_try_at: null, failing_since: null, last_error: null };

/** Adds a way out that begins after a sequence, unless it is known already. */
export async function insertRelay(tx: Tx, name: string, position: number): Promise<void> {
  await tx
    .insertInto('relays')
    .values({ name, position, holder: null, held_until: 0, delivered_at: null, ...well })
    .onConflict((oc) => oc.column('name').doNothing())
    .execute();
}

/** Reads one way out. */
export function selectRelay(read: Reader, name: string): Promise<StoredRelay | undefined> {
  return read.selectFrom('relays').where('name', '=', name).selectAll().executeTakeFirst();
}

/** Reads all ways out that were ever used, in order of their names. */
export function selectRelays(read: Reader): Promise<StoredRelay[]> {
  return read.selectFrom('relays').orderBy('name').selectAll().execute();
}

/** Who relays, and until when nobody else does. */
interface Hold {
  readonly name: string;
  readonly holder: string;
  readonly nowMs: number;
  readonly untilMs: number;
}

/** Takes or prolongs the hold on a way out; answers whether it is ours. Rule: EVENT-22. */
export async function updateHold(tx: Tx, { name, holder, nowMs, untilMs }: Hold): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('relays')
    .set({ holder, held_until: untilMs })
    .where('name', '=', name)
    .where((eb) =>
      eb.or([
        eb('holder', 'is', null),
        eb('holder', '=', holder),
        eb('held_until', '<=', nowMs),
        // Nobody holds it for so long: the clock was set back.
        eb('held_until', '>', nowMs + bogusHoldMs),
      ]),
    )
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

/** Gives the hold on a way out up. */
export async function deleteHold(tx: Tx, name: string, holder: string): Promise<void> {
  await tx
    .updateTable('relays')
    .set({ holder: null, held_until: 0 })
    .where('name', '=', name)
    .where('holder', '=', holder)
    .execute();
}

/** A step of whoever holds a way out; it counts only while nobody else has moved it. */
interface Step {
  readonly name: string;
  readonly holder: string;
  /** Where it was when the step began. */
  readonly from: number;
}

function updateOwn(tx: Tx, { name, holder, from }: Step) {
  return tx.updateTable('relays').where('name', '=', name).where('holder', '=', holder).where('position', '=', from);
}

/** Moves a way out forward, past what has arrived or was set aside; answers whether it was still ours. */
export async function updatePosition(
  tx: Tx,
  step: Step,
  { to, deliveredAt }: { readonly to: number; readonly deliveredAt: number | null },
): Promise<boolean> {
  const { numUpdatedRows } = await updateOwn(tx, step)
    .set({ position: to, ...well, ...(deliveredAt === null ? {} : { delivered_at: deliveredAt }) })
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

/**
 * Notes that the next event did not arrive; answers whether it was still ours, and nobody had seen to what failed before
 * meanwhile.
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

/** Makes a way out try again at once, whatever failed before. */
export async function updateRetryNow(tx: Tx, name: string): Promise<void> {
  await tx.updateTable('relays').set(well).where('name', '=', name).execute();
}

/** Moves a way out to go on after a sequence, and to try at once; answers whether there is such a one. Rule: EVENT-10. */
export async function updateReplay(tx: Tx, name: string, after: number): Promise<boolean> {
  const { numUpdatedRows } = await tx
    .updateTable('relays')
    .set({ position: after, ...well })
    .where('name', '=', name)
    .executeTakeFirst();
  return numUpdatedRows === 1n;
}

/** Forgets a way out with its dead letters. */
export async function deleteRelay(tx: Tx, name: string): Promise<void> {
  // First: whoever sets an event aside at this moment holds this row.
  await tx.deleteFrom('relays').where('name', '=', name).execute();
  await tx.deleteFrom('dead_letters').where('relay', '=', name).execute();
}

/** Adds an event that is set aside, or asked for again; one that is there already takes the new state. */
export async function upsertLetter(tx: Tx, letter: StoredLetter): Promise<void> {
  const { attempts, last_error, requeued_at } = letter;
  await tx
    .insertInto('dead_letters')
    .values(letter)
    .onConflict((oc) => oc.columns(['relay', 'sequence']).doUpdateSet({ attempts, last_error, requeued_at }))
    .execute();
}

/** The first events of a way out that were asked for again. */
export function selectRequeued(read: Reader, relay: string, limit: number): Promise<StoredLetter[]> {
  return read
    .selectFrom('dead_letters')
    .where('relay', '=', relay)
    .where('requeued_at', 'is not', null)
    .orderBy('sequence')
    .limit(limit)
    .selectAll()
    .execute();
}

/** The sequence of the first event that was asked for again, for each way out that has one. */
export async function selectFirstRequeued(read: Reader): Promise<ReadonlyMap<string, number>> {
  const rows = await read
    .selectFrom('dead_letters')
    .where('requeued_at', 'is not', null)
    .groupBy('relay')
    .select((eb) => ['relay', eb.fn.min('sequence').as('sequence')] as const)
    .execute();
  return new Map(rows.map(({ relay, sequence }) => [relay, sequence]));
}

/** A page of what was set aside, by way out and sequence; `total` is how many there are. */
export async function selectLetters(
  read: Reader,
  { relay, offset, limit }: { readonly relay: string | undefined; readonly offset: number; readonly limit: number },
) {
  const all = read.selectFrom('dead_letters');
  const wanted = relay === undefined ? all : all.where('relay', '=', relay);
  const { total } = await wanted.select((eb) => eb.fn.countAll<number>().as('total')).executeTakeFirstOrThrow();
  const letters = await wanted.orderBy('relay').orderBy('sequence').offset(offset).limit(limit).selectAll().execute();
  return { total, letters };
}

/** How many dead letters each way out has; one without any is not there. */
export async function countLetters(read: Reader): Promise<ReadonlyMap<string, number>> {
  const rows = await read
    .selectFrom('dead_letters')
    .where('requeued_at', 'is', null)
    .groupBy('relay')
    .select((eb) => ['relay', eb.fn.countAll<number>().as('count')] as const)
    .execute();
  return new Map(rows.map(({ relay, count }) => [relay, count]));
}

/**
 * Asks for dead letters again: those of these ids, of a way out, or all; answers how many. Their ways out try at once.
 * Rule: EVENT-23.
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
  if (numUpdatedRows > 0n) await tx.updateTable('relays').set(well).where('name', 'in', asked).execute();
  return Number(numUpdatedRows);
}

/** Notes that an event did not arrive this time either: it is dead again. */
export async function updateLetterFailed(
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

/** Forgets something that was set aside; answers whether it was there. */
export async function deleteLetter(tx: Tx, id: string): Promise<boolean> {
  const { numDeletedRows } = await tx.deleteFrom('dead_letters').where('id', '=', id).executeTakeFirst();
  return numDeletedRows === 1n;
}
