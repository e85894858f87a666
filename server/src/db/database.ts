import type { Compilable, Kysely, RawBuilder, Transaction } from 'kysely';
import type { Tables } from './schema/tables.ts';

/** Where a read may run: on the committed state, or inside a transaction that sees its own writes. It writes nothing itself. */
export type Reader = Pick<
  Kysely<Tables>,
  'selectFrom' | 'selectNoFrom' | 'with' | 'withRecursive' | 'fn' | 'dynamic' | 'getExecutor'
>;
/** An open transaction. */
export type Tx = Transaction<Tables>;

/** The arguments of a hot query, by name. */
export type Arguments = Readonly<Record<string, unknown>>;

/** The parameters of a hot query, as expressions to build it with. */
export type Placeholders<A> = { readonly [K in keyof A]: RawBuilder<A[K]> };

/** A query that is built once and then run many times: see `preparedQuery`. */
export interface PreparedQuery<A extends Arguments, T> {
  /** Builds the query; called once for each database. */
  readonly build: (read: Reader, args: Placeholders<A>) => Compilable;
  /** Converts a row to the query's value. */
  readonly toValue: (row: unknown) => T;
  /** Values may be cached until the next commit; they must not be modified then. */
  readonly isCached: boolean;
}

/** The store as far as it opens no transaction, the same for both engines. */
export interface ReadableDatabase {
  /** Several processes may serve from this store at once. */
  readonly isShared: boolean;
  /** Sees committed state only; a read after a confirmed write sees that write. */
  readonly read: Reader;
  /**
   * Runs a query that is compiled and prepared once and returns its first row's value. For the path of every request;
   * elsewhere use `read`.
   */
  first<A extends Arguments, T>(query: PreparedQuery<A, T>, args: A): Promise<T | undefined>;
  /**
   * Streams all rows of a query from one snapshot, for lists of any length: in batches of at least one row, each in its
   * own turn of the event loop. Runs one statement and holds none of the rows. A reader that stops early ends it.
   * Throws `overloaded` while too many streams are open, in total or for this reader.
   * @param query built with `read`, and not executed
   * @param reader the user or client that the list is for, such as a user id
   */
  batches<R>(query: Compilable<R>, reader: string): AsyncIterable<readonly R[]>;
  /**
   * Resolves once `dataVersion` knows of everything that was committed before this call; `null` where it always does.
   * Throws where the store cannot be asked.
   */
  refreshVersion(): Promise<void> | null;
  /** A number that changes with every commit, of this process or another: see `refreshVersion`. */
  dataVersion(): number;
  /** Throws when the store cannot be read, and while it does not write although it was asked to. Rule: STORE-15. */
  check(): Promise<void>;
}

/** The store, the same for both engines. */
export interface Database extends ReadableDatabase {
  /** The same state, with all that may be done to it. */
  readonly read: Kysely<Tables>;
  /**
   * Runs `work` in one transaction: everything in it is kept, durably, or nothing is. Never wait in `work` for anything
   * but the transaction's own queries, and turns of the event loop.
   */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  /**
   * Runs `work` in a side transaction, for what is recorded behind requests. It delays no one: where the store is
   * shared, it waits for no other transaction and no other waits for it, and `dataVersion` need not change with it. Use
   * it only for data that no `cachedQuery` reads and no rule compares, with statements that are correct whatever runs at
   * the same time.
   */
  sideTransaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** Declares a query for `Database.first`, whose value is the row. */
export function preparedQuery<A extends Arguments, R>(
  build: (read: Reader, args: Placeholders<A>) => Compilable<R>,
): PreparedQuery<A, R> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the rows of the query that was built above
  return { build, toValue: (row) => row as R, isCached: false };
}

/** Declares a query for `Database.first` whose value is made once and kept until the next commit. */
export function cachedQuery<A extends Arguments, R, T>(
  build: (read: Reader, args: Placeholders<A>) => Compilable<R>,
  toValue: (row: R) => T,
): PreparedQuery<A, T> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the rows of the query that was built above
  return { build, toValue: (row) => toValue(row as R), isCached: true };
}
