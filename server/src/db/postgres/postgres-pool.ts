import pg from 'pg';
import type { Logger } from 'pino';
import { second } from '../../base/clock.ts';
import { StoreBusyError, StoreLostError } from '../failures.ts';
import { codeOf, PostgresConnection, readOnlyCode } from './postgres-connection.ts';
import { applicationNames } from './postgres-servers.ts';

/** Milliseconds for a new connection, and for one that is in use elsewhere. */
const connectMsMax = 2 * second;
const statementMsMax = 30 * second;
/** Also when the server is gone and its response never arrives. */
const responseMsMax = statementMsMax + 5 * second;
/** Milliseconds that a transaction waits for another one that is writing. */
const lockMsMax = 2.5 * second;
/** A transaction that is idle for so many milliseconds has lost its process, and blocks all others. */
const idleMsMax = 3 * second;
/** After a change of the server that writes, no connection to the earlier one is kept for longer. */
const lifeSecondsMax = 300;

/** Integers are parsed to numbers: none of ours exceeds the range of a double. */
const types = new pg.TypeOverrides();
types.setTypeParser(pg.types.builtins.INT8, Number);
types.setTypeParser(pg.types.builtins.NUMERIC, Number);

class ReadOnlyServerError extends Error {
  readonly code = readOnlyCode;
}

async function requireWriting(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ transaction_read_only: string }>('show transaction_read_only');
  if (rows[0]?.transaction_read_only === 'on') throw new ReadOnlyServerError('the server takes no writes');
}

/** Said of a pool all of whose connections are taken, which is nothing that another server could help. */
const isFull = (error: unknown) => error instanceof Error && error.message.startsWith('timeout exceeded');

interface PoolParts {
  /** At least one: see `postgresAddresses`. */
  readonly addresses: readonly string[];
  readonly connectionsMax: number;
  /** Program that connects. */
  readonly user: keyof typeof applicationNames;
  /**
   * Limit in milliseconds for a statement whose rows are read in pieces. The driver would treat the pieces as one
   * response that never arrives, so its own timeout is off. Without this value, statements must respond within 30 s.
   */
  readonly cursorMs?: number;
  readonly log: Logger | null;
}

function newPool(connectionString: string | undefined, parts: PoolParts): pg.Pool {
  const { connectionsMax, cursorMs, log } = parts;
  const pool = new pg.Pool({
    connectionString,
    types,
    max: connectionsMax,
    maxLifetimeSeconds: lifeSecondsMax,
    connectionTimeoutMillis: connectMsMax,
    statement_timeout: cursorMs ?? statementMsMax,
    query_timeout: cursorMs === undefined ? responseMsMax : 0,
    idle_in_transaction_session_timeout: idleMsMax,
    lock_timeout: lockMsMax,
    keepAlive: true,
    application_name: applicationNames[parts.user],
    // oxlint-disable-next-line typescript/no-misused-promises -- it is waited for, whatever the types say
    onConnect: requireWriting,
  });
  // A connection that breaks is replaced. Without listeners the error would end the process. The first listener is for
  // idle connections; the second for those in use, whose caller gets the error with the next response.
  pool.on('error', (error) => log?.warn({ code: codeOf(error) }, 'a connection to the store broke'));
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}

/**
 * Pool of connections to the first of several servers that is up and takes writes. When that one fails, the next caller
 * gets a connection to the next server.
 */
export class PostgresPool {
  readonly #parts: PoolParts;
  readonly #used = new Set<PostgresConnection>();
  #place = 0;
  #pool: pg.Pool;
  #end: Promise<void> | null = null;
  #heardMs = 0;

  constructor(parts: PoolParts) {
    this.#parts = parts;
    this.#pool = newPool(parts.addresses[0], parts);
  }

  /** Returns whether a caller waits for the pool, or uses one of its connections. */
  get isInUse(): boolean {
    return this.#used.size > 0 || this.#pool.waitingCount > 0;
  }

  /**
   * Returns a connection, to be returned by `release`. Tries each server once. Throws StoreBusyError where all
   * connections are in use for too long, and StoreLostError for the error of the last server.
   */
  async connect(): Promise<PostgresConnection> {
    for (let left = this.#parts.addresses.length; ; left -= 1) {
      const pool = this.#pool;
      try {
        return this.#use(await pool.connect(), pool);
      } catch (error) {
        if (isFull(error)) throw new StoreBusyError('all connections to the store are taken', { cause: error });
        if (this.#parts.addresses.length > 1) this.#leave(pool);
        if (left <= 1) throw new StoreLostError('no connection to the store', { cause: error });
      }
    }
  }

  /** Runs one statement on any connection. */
  async query<R extends pg.QueryResultRow>(statement: pg.QueryConfig): Promise<pg.QueryResult<R>> {
    const connection = await this.connect();
    try {
      return await connection.query<R>(statement);
    } finally {
      connection.release();
    }
  }

  /**
   * Reports that the server did not respond to a query sent at `askedMs` of `performance.now()`. Unless it responded to
   * others since, the pool leaves it, and no caller waits for it any longer. Rule: STORE-18.
   */
  giveUp(askedMs: number): void {
    if (this.#heardMs > askedMs) return;
    this.#leave(this.#pool);
    for (const connection of this.#used) connection.abandon();
  }

  /** Closes all idle connections, and the others when they are released. May be called twice. */
  end(): Promise<void> {
    this.#end ??= this.#pool.end();
    return this.#end;
  }

  #use(client: pg.PoolClient, pool: pg.Pool): PostgresConnection {
    const connection = new PostgresConnection({
      client,
      onResponse: (error) => {
        if (error === null || error instanceof pg.DatabaseError) this.#heardMs = performance.now();
        if (codeOf(error) === readOnlyCode) this.#leave(pool);
      },
      onRelease: () => this.#used.delete(connection),
    });
    this.#used.add(connection);
    return connection;
  }

  /**
   * Switches to the next server, unless that has happened already; connections in use are kept until they are released.
   */
  #leave(pool: pg.Pool): void {
    if (this.#pool !== pool || pool.ending) return;
    const { addresses } = this.#parts;
    this.#place = (this.#place + 1) % addresses.length;
    this.#pool = newPool(addresses[this.#place], this.#parts);
    pool.end().catch(() => {});
  }
}
