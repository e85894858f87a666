import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { Kysely, type KyselyPlugin, SqliteDialect } from 'kysely';
import type { Write } from '../../src/access/reauthorization.ts';
import type { Database, Tx } from '../../src/db/database.ts';
import type { Tables } from '../../src/db/schema/tables.ts';
import type { TestApp } from './test-app.ts';
import { isOnPostgres } from './test-store.ts';

type Transaction = Database['transaction'];

/**
 * Runs requests in lanes of which exactly one moves at a time. A lane stops ahead of every transaction; the next lane
 * is picked from outside, so that a run can be repeated.
 */
export class Interleaver {
  readonly #parked = new Map<number, () => void>();
  #current: number | null = null;
  #stopped = () => {};

  /** Stops the lane that moves until it is picked again. Work that belongs to no lane passes. */
  pass(): Promise<void> {
    const lane = this.#current;
    if (lane === null || this.#parked.has(lane)) return Promise.resolve();
    return new Promise((resolve) => {
      this.#parked.set(lane, resolve);
      this.#stopped();
    });
  }

  /** Lets a lane move until it stops again or ends. */
  async #move(lane: number, go: () => void): Promise<void> {
    const stopped = new Promise<void>((resolve) => {
      this.#stopped = resolve;
    });
    this.#current = lane;
    go();
    await stopped;
    this.#current = null;
  }

  /**
   * Runs all lanes to their end.
   * @param pick chooses among a number of lanes
   * @param afterMove called whenever a lane has stopped or ended
   */
  async run(
    lanes: readonly (() => Promise<void>)[],
    pick: (count: number) => number,
    afterMove: () => void,
  ): Promise<void> {
    const failures: unknown[] = [];
    for (const [lane, start] of lanes.entries()) {
      await this.#move(lane, () => {
        start()
          .catch((error) => failures.push(error))
          .finally(() => this.#stopped());
      });
      afterMove();
    }
    const inOrder = () => [...this.#parked].sort(([a], [b]) => a - b);
    for (let waiting = inOrder(); waiting.length > 0; waiting = inOrder()) {
      const [lane, go] = waiting[pick(waiting.length)] ?? waiting[0] ?? [];
      if (lane === undefined || go === undefined) break;
      this.#parked.delete(lane);
      await this.#move(lane, go);
      afterMove();
    }
    if (failures.length > 0) throw failures[0];
  }
}

/** Makes transactions that wait to be picked and then run as the store runs them. */
export function pickedTransactions(interleaver: Interleaver, transaction: Transaction): Transaction {
  return async (work) => {
    await interleaver.pass();
    return transaction(work);
  };
}

/** A mutant of the store: each statement commits alone, and other lanes may move between two of them. */
export function looseTransactions(interleaver: Interleaver, app: TestApp): Transaction {
  const turns: KyselyPlugin = {
    transformQuery: ({ node }) => node,
    transformResult: async ({ result }) => {
      await interleaver.pass();
      return result;
    },
  };
  return async (work) => {
    await interleaver.pass();
    const { read } = app.services.db;
    if (isOnPostgres) return work(read.withPlugin(turns) as unknown as Tx);
    const connection = new Sqlite(join(app.dataDir, 'latchkey.db'));
    connection.pragma('foreign_keys = ON');
    const loose = new Kysely<Tables>({ dialect: new SqliteDialect({ database: connection }), plugins: [turns] });
    try {
      return await work(loose as unknown as Tx);
    } finally {
      await loose.destroy();
    }
  };
}

/** A kind of statement on one table. */
export type Forgotten = readonly ['insertInto' | 'updateTable' | 'deleteFrom', keyof Tables];

/** A transaction that forgets one kind of statement on one table. */
export function forgetful(tx: Tx, [statement, table]: Forgotten): Tx {
  const nothing: unknown = new Proxy(() => {}, {
    get: (_, name) => (name === 'execute' ? async () => [] : () => nothing),
  });
  return new Proxy(tx, {
    get(target, name) {
      const value: unknown = Reflect.get(target, name);
      if (typeof value !== 'function') return value;
      return (...args: unknown[]) =>
        name === statement && args[0] === table ? nothing : Reflect.apply(value, target, args);
    },
  });
}

/** The input of a handler whose transactions forget one kind of statement on one table. */
export function forgetfulInput(input: never, forgotten: Forgotten): never {
  const given: { readonly write: Write } = input;
  const write: Write = (work) => given.write((tx, caller) => work(forgetful(tx, forgotten), caller));
  return { ...given, write } as never;
}
