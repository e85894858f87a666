import type { Compilable } from 'kysely';
import type { QueryConfig } from 'pg';
import type { Scope } from '../../base/scope.ts';
import { ListPlaces } from '../list-places.ts';
import type { PostgresPool } from './postgres-pool.ts';

/** Few enough rows that a turn of the event loop with them is short. */
const rowsMax = 200;
/** How many lists are read at once, each over a connection that is there for lists. */
export const listsMax = 8;

/** Reads long lists in batches: each list is a cursor, and sees one moment of the store from beginning to end. */
export class PostgresLists {
  readonly #pool: PostgresPool;
  readonly #places = new ListPlaces(listsMax);

  constructor(pool: PostgresPool) {
    this.#pool = pool;
  }

  read<R>(query: Compilable<R>, reader: string): AsyncGenerator<readonly R[]> {
    return this.#places.read(reader, (scope) => {
      const { sql, parameters } = query.compile();
      return this.#batches<R>({ text: sql, values: [...parameters] }, scope);
    });
  }

  async *#batches<R>(statement: QueryConfig, scope: Scope): AsyncGenerator<readonly R[]> {
    const connection = await this.#pool.connect();
    // With it goes the moment of the store that this list saw.
    scope.hold(() => connection.release());
    yield* connection.batches<R>(statement, rowsMax);
  }
}
