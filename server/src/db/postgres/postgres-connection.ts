import type { QueryResult } from 'pg';
import pg from 'pg';
import Cursor from 'pg-cursor';
import { second } from '../../base/clock.ts';
import { isStoreFailure, StoreLostError } from '../failures.ts';

/** A commit that waits for a lost standby waits for ever; its caller must not. */
const controlMsMax = 2.5 * second;
const control = /^(start transaction|commit|rollback)\b/;

interface TimedQuery extends pg.QueryConfig {
  readonly query_timeout: number;
}

/** The code of an error, of PostgreSQL or of the system; empty where it has none. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/** Converts an error of a connection to one of the store: its code alone could be that of any other connection. */
function named(error: unknown): unknown {
  const isOfConnection = isStoreFailure(error) && !(error instanceof pg.DatabaseError);
  return isOfConnection ? new StoreLostError('the connection to the store broke', { cause: error }) : error;
}

/** PostgreSQL's code for a session that cannot write. */
export const readOnlyCode = '25006';

/** Returns whether the connection is still usable: PostgreSQL rejected one statement, and nothing else happened. */
function leavesGood(error: unknown): boolean {
  return error instanceof pg.DatabaseError && error.severity === 'ERROR' && error.code !== readOnlyCode;
}

interface ConnectionParts {
  readonly client: pg.PoolClient;
  /** Called after each response with the error, or `null`. */
  readonly onResponse: (error: unknown) => void;
  readonly onRelease: () => void;
}

/**
 * Connection of a pool. After any outcome but a response of PostgreSQL's that leaves it usable, it takes no more
 * statements and is not reused: the response to an abandoned statement may still arrive, and would be taken for that of
 * the next one.
 */
export class PostgresConnection {
  readonly #parts: ConnectionParts;
  #fault: Error | null = null;

  constructor(parts: ConnectionParts) {
    this.#parts = parts;
  }

  query<R extends pg.QueryResultRow>(
    statement: string | pg.QueryConfig,
    values?: readonly unknown[],
  ): Promise<QueryResult<R>> {
    const given = typeof statement === 'string' ? { text: statement } : statement;
    const query = values === undefined ? given : { ...given, values: [...values] };
    const timed: TimedQuery | pg.QueryConfig = control.test(query.text)
      ? { ...query, query_timeout: controlMsMax }
      : query;
    return this.#ask(() => this.#parts.client.query<R>(timed));
  }

  /**
   * Streams the rows of a statement in batches of at most `rowsMax`. A reader that stops early ends the statement and
   * closes the connection, which would have to be waited for otherwise.
   */
  async *stream<R>(statement: pg.QueryConfig, rowsMax: number): AsyncGenerator<R[]> {
    const cursor = this.#parts.client.query(new Cursor<R>(statement.text, statement.values));
    let isOver = false;
    try {
      for (;;) {
        const rows = await this.#ask(() => cursor.read(rowsMax));
        isOver = rows.length === 0;
        if (isOver) return;
        yield rows;
      }
    } finally {
      if (!isOver) this.#fault ??= new StoreLostError('the reader of a list has left');
    }
  }

  /** Closes it, even while it is in use: its server does not respond. */
  abandon(): void {
    this.#fault ??= new StoreLostError('the store does not respond');
    // Statements that still wait are rejected.
    void this.#parts.client.end();
  }

  /** Gives it back to its pool. */
  release(): void {
    this.#parts.client.release(this.#fault ?? undefined);
    this.#parts.onRelease();
  }

  async #ask<T>(question: () => Promise<T>): Promise<T> {
    if (this.#fault !== null) throw this.#fault;
    try {
      const response = await question();
      this.#parts.onResponse(null);
      return response;
    } catch (thrown) {
      const error = named(thrown);
      if (!leavesGood(error)) this.#fault ??= error instanceof Error ? error : new Error(String(error));
      this.#parts.onResponse(error);
      throw error;
    }
  }
}
