import type { Compilable } from 'kysely';
import type { QueryConfig } from 'pg';
import { RefusedError } from '../errors.ts';
import { Shares } from '../shares.ts';
import type { PostgresPool } from './postgres-pool.ts';

/** Few enough rows that a turn of the event loop with them is short. */
const rowsMax = 200;
/** How many lists are read at once, each over a connection that is there for lists. */
export const listsMax = 8;
const ofOneMax = 4;

function refuseMore(): RefusedError {
  return new RefusedError('overloaded', { headers: { 'retry-after': '5' } });
}

/** Reads long lists in batches: each list is a cursor, and sees one moment of the store from beginning to end. */
export class PostgresLists {
  readonly #pool: PostgresPool;
  readonly #running = new Shares();
  #count = 0;

  constructor(pool: PostgresPool) {
    this.#pool = pool;
  }

  async *read<R>(query: Compilable<R>, reader: string): AsyncGenerator<readonly R[]> {
    const { sql, parameters } = query.compile();
    if (this.#count >= listsMax || this.#running.of(reader) >= ofOneMax) throw refuseMore();
    this.#count += 1;
    this.#running.take(reader);
    try {
      yield* this.#batches<R>({ text: sql, values: [...parameters] });
    } finally {
      this.#running.giveBack(reader);
      this.#count -= 1;
    }
  }

  async *#batches<R>(statement: QueryConfig): AsyncGenerator<readonly R[]> {
    const connection = await this.#pool.connect();
    try {
      yield* connection.batches<R>(statement, rowsMax);
    } finally {
      // Whoever stops early lets go of the moment that this list saw.
      connection.release();
    }
  }
}
