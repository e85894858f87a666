import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { Secret } from '../../src/base/secret.ts';
import { cachedQuery, type Database, type Placeholders, preparedQuery } from '../../src/db/database.ts';
import { openPostgres } from '../../src/db/postgres/postgres.ts';
import { migrate } from '../../src/db/schema/migrate.ts';
import { TestClock } from './test-clock.ts';
import { postgresServer } from './test-store.ts';

/** Reads a number of the table `counters`. */
export const selectCounter = preparedQuery((read, { name }: Placeholders<{ name: string }>) =>
  read.selectFrom('counters').where('name', '=', name).select('value'),
);

/** The same, kept until the next commit. */
export const selectKept = cachedQuery(
  (read, { name }: Placeholders<{ name: string }>) =>
    read.selectFrom('counters').where('name', '=', name).select('value'),
  ({ value }) => ({ value }),
);

/** Stores a number in the table `counters`. */
export async function setCounter(db: Database, name: string, value: number): Promise<void> {
  await db.transaction((tx) =>
    tx
      .insertInto('counters')
      .values({ name, value })
      .onConflict((oc) => oc.column('name').doUpdateSet({ value }))
      .execute(),
  );
}

async function ask(url: string, sql: string): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

/** A database of its own, the nodes that have it open, and other connections to it. */
export class PostgresPlace {
  readonly url: string;
  readonly name: string;
  readonly #opened: Database[] = [];

  private constructor(name: string) {
    const url = new URL(postgresServer());
    url.pathname = `/${name}`;
    this.name = name;
    this.url = url.href;
  }

  /** Makes an empty one. */
  static async make(): Promise<PostgresPlace> {
    const place = new PostgresPlace(`lk_${randomBytes(8).toString('hex')}`);
    await ask(postgresServer(), `create database ${place.name}`);
    return place;
  }

  /** Opens it as a node does, without migrating it. */
  async open(url = this.url): Promise<Database> {
    const db = await openPostgres(new Secret(url));
    this.#opened.push(db);
    return db;
  }

  /** Opens it and brings it to this release's schema. */
  async openMigrated(url = this.url): Promise<Database> {
    const db = await this.open(url);
    await migrate(db, new TestClock());
    return db;
  }

  /** Runs a statement over a connection of its own; answers its rows. */
  run(sql: string): Promise<Record<string, unknown>[]> {
    return ask(this.url, sql);
  }

  /** A connection of its own that is used for more than one statement; to be ended. */
  async outsider(): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: this.url });
    client.on('error', () => {});
    await client.connect();
    return client;
  }

  /** Ends sessions of the nodes on the spot, as an operator does; answers how many. */
  async cut(condition = 'true'): Promise<number> {
    const rows = await this.run(
      `select pg_terminate_backend(pid) from pg_stat_activity
       where datname = current_database() and application_name = 'latchkey' and ${condition}`,
    );
    return rows.length;
  }

  /** Returns the number of sessions of the nodes in a state. */
  async count(condition = 'true'): Promise<number> {
    const [row] = await this.run(
      `select count(*)::int as count from pg_stat_activity
       where datname = current_database() and application_name = 'latchkey' and ${condition}`,
    );
    return Number(row?.['count']);
  }

  /** Closes all nodes and removes it. */
  async remove(): Promise<void> {
    for (const db of this.#opened) await db.close().catch(() => {});
    await ask(postgresServer(), `drop database if exists ${this.name} with (force)`);
  }
}
