import type { Compilable } from 'kysely';
import type { QueryConfig } from 'pg';
import { ApiError, refuseTooMany } from '../../base/errors.ts';
import { KeyedCounter } from '../../base/keyed-counter.ts';
import { readInScope, type Scope } from '../../base/scope.ts';
import type { PostgresPool } from './postgres-pool.ts';

/** Few enough rows that a turn of the event loop with them is short. */
const rowsMax = 200;
/** Lists that are read at once, each over a connection from the pool for lists. */
export const listsMax = 8;
const ofOneMax = 4;
const retryAfterSeconds = 5;

function refuseMore(): ApiError {
  return new ApiError('overloaded', { headers: { 'retry-after': String(retryAfterSeconds) } });
}

/** Streams long lists: each is a cursor and sees one snapshot of the store from beginning to end. */
export class PostgresLists {
  readonly #pool: PostgresPool;
  readonly #running = new KeyedCounter('lists');

  constructor(pool: PostgresPool) {
    this.#pool = pool;
  }

  read<R>(query: Compilable<R>, reader: string): AsyncGenerator<readonly R[]> {
    return readInScope((scope) => {
      const { sql, parameters } = query.compile();
      if (this.#running.of(reader) >= ofOneMax) throw refuseTooMany(ofOneMax, retryAfterSeconds);
      if (this.#running.all >= listsMax) throw refuseMore();
      this.#running.take(scope, reader);
      return this.#stream<R>({ text: sql, values: [...parameters] }, scope);
    });
  }

  async *#stream<R>(statement: QueryConfig, scope: Scope): AsyncGenerator<readonly R[]> {
    const connection = await this.#pool.connect();
    // Releases the snapshot of this list as well.
    scope.hold(() => connection.release());
    yield* connection.stream<R>(statement, rowsMax);
  }
}
