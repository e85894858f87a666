import { randomInt } from 'node:crypto';
import { type Kysely, sql } from 'kysely';
import pLimit, { type LimitFunction } from 'p-limit';
import { second } from '../../base/clock.ts';
import type { Database, Tx } from '../database.ts';
import { StoreBusyError } from '../failures.ts';
import { retryOnConflict } from '../retry-on-conflict.ts';
import type { Tables } from '../schema/tables.ts';
import { WriteHealth } from '../write-health.ts';

/** Side transactions that may run at once; the rest of the connections stay free for callers. */
const sideTransactionsMax = 2;
/** One that writes, and one that waits for its turn; the rest of the connections stay free for readers. */
const writersMax = 2;
/**
 * Milliseconds that a transaction waits until it may begin: for its turn in this process, and then for other processes.
 */
const beginMsMax = 2.5 * second;
/** Transactions that waited for less have about as much time as any session waits for a lock. */
const shortWaitMs = 0.2 * second;
const triesMax = 5;
const doubtMs = 3 * second;
const markMax = 2 ** 48 - 1;

interface Attempt<T> {
  readonly work: (tx: Tx) => Promise<T>;
  /** Until when it has to have begun, of `performance.now()`. */
  readonly untilMs: number;
}

function attempt<T>(read: Kysely<Tables>, { work, untilMs }: Attempt<T>): Promise<T> {
  return read
    .transaction()
    .setIsolationLevel('read committed')
    .execute(async (tx) => {
      const leftMs = Math.max(1, Math.ceil(untilMs - performance.now()));
      if (leftMs < beginMsMax - shortWaitMs) await sql`set local lock_timeout = ${sql.lit(leftMs)}`.execute(tx);
      await sql`update writer set mark = ${randomInt(markMax)} where id = 1`.execute(tx);
      return work(tx);
    });
}

/** Does `work` when it is its turn. When that has not come within `msMax`, throws StoreBusyError and never does it. */
function inTurn<T>(turns: LimitFunction, msMax: number, work: () => Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      reject(new StoreBusyError('too many transactions wait'));
    }, msMax);
    turns(async () => {
      clearTimeout(timer);
      if (!isLate) resolve(await work());
    }).catch(reject);
  });
}

/** The ways to write to a store in PostgreSQL. */
export interface Writing {
  readonly transaction: Database['transaction'];
  readonly sideTransaction: Database['sideTransaction'];
  /** State of the store: writable or not. */
  readonly health: WriteHealth;
}

/** Runs transactions one after another, those again that others were in the way of, and notes: see `Database`. */
export function writing(read: Kysely<Tables>): Writing {
  const [turns, sideTransactions] = [pLimit(writersMax), pLimit(sideTransactionsMax)];
  // On a full disk what finds room in pages that are there already is still written.
  const health = new WriteHealth(() => transaction(async () => {}), doubtMs);

  async function transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    const untilMs = performance.now() + beginMsMax;
    const run = () => inTurn(turns, untilMs - performance.now(), () => attempt(read, { work, untilMs }));
    return health.watch(() => retryOnConflict(triesMax, run));
  }

  function note<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    const run = () => sideTransactions(() => read.transaction().setIsolationLevel('read committed').execute(work));
    return health.watch(() => retryOnConflict(triesMax, run));
  }
  return { transaction, sideTransaction: note, health };
}
