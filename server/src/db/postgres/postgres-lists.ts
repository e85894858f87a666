import type { Compilable } from 'kysely';
import type { QueryConfig } from 'pg';
import type { Scope } from '../../base/scope.ts';
import { ListPlaces } from '../list-places.ts';
import type { PostgresPool } from './postgres-pool.ts';

/** Few enough rows that a turn of the event loop with them is short. */
const rowsMax = 200;
/** Lists that are read at once, each over a connection from the pool for lists. */
export const listsMax = 8;

/** Streams long lists: each is a cursor and sees one snapshot of the store from beginning to end. */
export class PostgresLists {
  readonly #pool: PostgresPool;
  readonly #places = new ListPlaces({ max: listsMax });

  constructor(pool: PostgresPool) {
    this.#pool = pool;
  }

  read<R>(query: Compilable<R>, reader: string): AsyncGenerator<readonly R[]> {
    return this.#places.read(reader, (scope) => {
      const { sql, parameters } = query.compile();
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
