import { MessageChannel, receiveMessageOnPort, Worker } from 'node:worker_threads';
import type { Json } from './test-app.ts';

/** A statement in SQLite's words, with `?` for each value, or `@name` or `:name` for those of one object. */
export interface StoreStatement {
  run(...values: readonly unknown[]): { readonly changes: number };
  get(...values: readonly unknown[]): Json;
  all(...values: readonly unknown[]): Json[];
  /** Answers the first column in place of rows. */
  pluck(): StoreStatement;
}

/** A connection to a store whose answers are waited for, so that nothing else happens meanwhile in this process. */
export interface StoreConnection {
  prepare(sql: string): StoreStatement;
  exec(sql: string): unknown;
  /** Makes a function of `work` that runs it in one transaction. */
  transaction<T>(work: () => T): () => T;
  close(): unknown;
}

interface Reply {
  readonly rows: Json[];
  readonly changes: number;
  readonly message?: string;
  readonly code?: string;
}

type Request = Readonly<{ number: number; kind?: 'open' | 'close'; url?: string; text?: string; values?: unknown[] }>;

const responseMsMax = 30_000;
let asking: ((request: Request) => Reply) | null = null;
let opened = 0;

/** One thread for all connections of this process: it works on while this one waits. */
function startAsking(): (request: Request) => Reply {
  const turn = new Int32Array(new SharedArrayBuffer(4));
  const { port1, port2 } = new MessageChannel();
  const worker = new Worker(new URL('postgres-worker.mjs', import.meta.url), {
    workerData: { port: port2, turn },
    transferList: [port2],
  });
  worker.unref();
  port1.unref();
  return (request) => {
    Atomics.store(turn, 0, 0);
    port1.postMessage(request);
    // What wakes may be late, and meant for the question before this one.
    while (Atomics.load(turn, 0) === 0) {
      if (Atomics.wait(turn, 0, 0, responseMsMax) === 'timed-out') throw new Error('the test store gave no answer');
    }
    const reply = (receiveMessageOnPort(port1) as { message: Reply }).message;
    if (reply.message !== undefined) throw Object.assign(new Error(reply.message), { code: reply.code });
    return reply;
  };
}

function ask(request: Request): Reply {
  asking ??= startAsking();
  return asking(request);
}

const quoted = /'[^']*'|"[^"]*"/g;

/** SQLite's placeholders as PostgreSQL's, and the values in their order. Texts in quotes are left as they are. */
function toPostgres(sql: string, given: readonly unknown[]): { text: string; values: unknown[] } {
  const [named] = given as [Record<string, unknown>?];
  const values = /(?<!:)[@:]\w+/.test(sql.replace(quoted, '')) ? [] : given.flat();
  let count = 0;
  const text = sql.replace(/'[^']*'|"[^"]*"|\?|(?<!:)[@:](\w+)/g, (found, name?: string) => {
    if (found !== '?' && name === undefined) return found;
    if (name !== undefined) values.push(named?.[name]);
    count += 1;
    return `$${count}`;
  });
  return { text, values };
}

class PostgresStatement implements StoreStatement {
  readonly #number: number;
  readonly #sql: string;
  readonly #isPlucked: boolean;

  constructor(number: number, sql: string, isPlucked = false) {
    this.#number = number;
    this.#sql = sql;
    this.#isPlucked = isPlucked;
  }

  run(...given: readonly unknown[]): { readonly changes: number } {
    return ask({ number: this.#number, ...toPostgres(this.#sql, given) });
  }

  get(...given: readonly unknown[]): Json {
    return this.all(...given)[0];
  }

  all(...given: readonly unknown[]): Json[] {
    const { rows } = ask({ number: this.#number, ...toPostgres(this.#sql, given) });
    return this.#isPlucked ? rows.map((row) => Object.values(row)[0]) : rows;
  }

  pluck(): StoreStatement {
    return new PostgresStatement(this.#number, this.#sql, true);
  }
}

/** Opens a connection to PostgreSQL that is used as one to SQLite is. */
export function postgresConnection(url: string): StoreConnection {
  opened += 1;
  const number = opened;
  ask({ number, kind: 'open', url });
  const exec = (text: string) => ask({ number, text });
  return {
    prepare: (sql) => new PostgresStatement(number, sql),
    exec,
    transaction: (work) => () => {
      exec('begin');
      try {
        const done = work();
        exec('commit');
        return done;
      } catch (error) {
        exec('rollback');
        throw error;
      }
    },
    close: () => ask({ number, kind: 'close' }),
  };
}
