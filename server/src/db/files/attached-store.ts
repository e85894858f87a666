import Sqlite from 'better-sqlite3';
import { Kysely, SqliteDialect } from 'kysely';
import type { Tx } from '../database.ts';
import type { Tables } from '../schema/tables.ts';

/**
 * Runs one transaction on a store that no other connection uses. With another store attached, SQL finds the tables of
 * that one in the schema `present`. References between tables are checked at the end only: throws where one of them
 * leads nowhere.
 * @param present the file of the attached store; `null`: none
 */
export async function withAttachedStore<T>(
  file: string,
  present: string | null,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  const store = new Sqlite(file);
  const kysely = new Kysely<Tables>({ dialect: new SqliteDialect({ database: store }) });
  try {
    store.pragma('foreign_keys = OFF');
    store.pragma('secure_delete = ON');
    store.prepare('ATTACH ? AS present').run(present ?? ':memory:');
    return await kysely.transaction().execute(async (tx) => {
      const done = await work(tx);
      const [loose] = store.prepare('PRAGMA main.foreign_key_check').all();
      if (loose !== undefined) throw new Error(`a reference leads nowhere: ${JSON.stringify(loose)}`);
      return done;
    });
  } finally {
    await kysely.destroy();
    // Kysely closes only connections that it has used.
    store.close();
  }
}
