import pg from 'pg';
import type { Logger } from 'pino';
import { second } from '../../base/clock.ts';
import { StoreBusyError, StoreLostError } from '../failures.ts';
import { codeOf, PostgresConnection, readOnlyCode } from './postgres-connection.ts';

/** For a connection to a server, and for one that somebody else uses. */
const connectMsMax = 2 * second;
const statementMsMax = 30 * second;
/** Whatever the server is up to: the answer of one that is gone never comes. */
const answerMsMax = statementMsMax + 5 * second;
/** How long a transaction waits for its turn while another one writes. */
const lockMsMax = 2.5 * second;
/** A transaction that does nothing for so long has lost its process, and every other one waits for it. */
const idleMsMax = 3 * second;
/** After a change of the server that writes, no connection to the earlier one is kept for longer. */
const lifeSecondsMax = 300;

/** Whole numbers come as numbers: none of ours is beyond what a double holds. */
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
  /**
   * How long a statement whose rows are read in pieces may take, in milliseconds; the driver counts its pieces as one answer
   * that never comes, so it is not asked to. Not said: statements answer at once, within 30 s.
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
    query_timeout: cursorMs === undefined ? answerMsMax : 0,
    idle_in_transaction_session_timeout: idleMsMax,
    lock_timeout: lockMsMax,
    keepAlive: true,
    application_name: 'latchkey',
    // oxlint-disable-next-line typescript/no-misused-promises -- it is waited for, whatever the types say
    onConnect: requireWriting,
  });
  // A connection that breaks is replaced. Without listeners it would end the process: the first is for one that nobody
  // uses, the second for one that somebody does, who is told by the next answer.
  pool.on('error', (error) => log?.warn({ code: codeOf(error) }, 'a connection to the store broke'));
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
}

/**
 * Connections to the first of some servers that is there and takes writes. When the one in use fails, whoever asks next is
 * given one of the next server.
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

  /** Whether anybody waits for it, or has one of its connections. */
  get isInUse(): boolean {
    return this.#used.size > 0 || this.#pool.waitingCount > 0;
  }

  /**
   * A connection, to be given back by `release`. Tries each server once. Throws StoreBusyError where all connections are
   * taken for too long, and StoreLostError for what is wrong with the last server.
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

  /** Answers one statement on any connection. */
  async query<R extends pg.QueryResultRow>(statement: pg.QueryConfig): Promise<pg.QueryResult<R>> {
    const connection = await this.connect();
    try {
      return await connection.query<R>(statement);
    } finally {
      connection.release();
    }
  }

  /**
   * The server did not answer a question that was asked at `askedMs` of `performance.now()`: unless it answered others since,
   * it is left, and nobody waits for it any more. Rule: STORE-18.
   */
  giveUp(askedMs: number): void {
    if (this.#heardMs > askedMs) return;
    this.#leave(this.#pool);
    for (const connection of this.#used) connection.abandon();
  }

  /** Ends all connections that nobody uses, and the others when they are released. May be called twice. */
  end(): Promise<void> {
    this.#end ??= this.#pool.end();
    return this.#end;
  }

  #use(client: pg.PoolClient, pool: pg.Pool): PostgresConnection {
    const connection = new PostgresConnection({
      client,
      onAnswer: (error) => {
        if (error === null || error instanceof pg.DatabaseError) this.#heardMs = performance.now();
        if (codeOf(error) === readOnlyCode) this.#leave(pool);
      },
      onRelease: () => this.#used.delete(connection),
    });
    this.#used.add(connection);
    return connection;
  }

  /** Goes on to the server after this one, unless somebody did already; what is in use is kept until it is released. */
  #leave(pool: pg.Pool): void {
    if (this.#pool !== pool || pool.ending) return;
    const { addresses } = this.#parts;
    this.#place = (this.#place + 1) % addresses.length;
    this.#pool = newPool(addresses[this.#place], this.#parts);
    pool.end().catch(() => {});
  }
}
