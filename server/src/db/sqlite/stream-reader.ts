import { setImmediate } from 'node:timers/promises';
import type Sqlite from 'better-sqlite3';
import type { Compilable } from 'kysely';
import { minute } from '../../base/clock.ts';
import type { Scope } from '../../base/scope.ts';
import { ListPlaces } from '../list-places.ts';

/** Few enough rows that a turn of the event loop with them is short. */
const rowsMax = 200;
/** Each keeps a snapshot of the store open, and with it all that was written since. */
const atOnceMax = 16;
/** Lists that overlap hold the log together, however short each is: after this long there has to be a gap. */
const withoutGapMs = 5 * minute;
const idleMax = 2;

/**
 * Streams long lists, each over a connection of its own: a list sees one snapshot of the store from beginning to end,
 * and does not block the connection that verifies credentials.
 */
export class StreamReader {
  readonly #open: () => Sqlite.Database;
  readonly #idle: Sqlite.Database[] = [];
  readonly #places = new ListPlaces({ max: atOnceMax, withoutGapMs });
  #isClosed = false;

  constructor(open: () => Sqlite.Database) {
    this.#open = open;
  }

  read<R>(query: Compilable<R>, reader: string): AsyncGenerator<readonly R[]> {
    return this.#places.read(reader, (scope) => {
      const { sql, parameters } = query.compile();
      const connection = this.#connect(scope);
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the rows of this very query
      const rows = connection.prepare(sql).iterate(...parameters) as IterableIterator<R>;
      return rowsOf(rows);
    });
  }

  #connect(scope: Scope): Sqlite.Database {
    const connection = this.#idle.pop() ?? this.#open();
    scope.hold(() => this.#giveBack(connection));
    return connection;
  }

  #giveBack(connection: Sqlite.Database): void {
    if (this.#isClosed || this.#idle.length >= idleMax) connection.close();
    else this.#idle.push(connection);
  }

  /** Lists under way close their own connection. */
  close(): void {
    this.#isClosed = true;
    for (const connection of this.#idle.splice(0)) connection.close();
  }
}

async function* rowsOf<R>(rows: IterableIterator<R>): AsyncGenerator<readonly R[]> {
  let batch: R[] = [];
  try {
    for (let row = rows.next(); !row.done; row = rows.next()) {
      batch.push(row.value);
      if (batch.length < rowsMax) continue;
      yield batch;
      batch = [];
      await setImmediate();
    }
  } finally {
    // A reader that stops early releases the snapshot of this list.
    rows.return?.();
  }
  if (batch.length > 0) yield batch;
}
