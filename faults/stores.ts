import { cpSync } from 'node:fs';
import { inStore } from './embedded-store.ts';
import { PostgresServer } from './postgres.ts';
import { freePort, removeFolder, temporaryFolder } from './processes.ts';

/** The store in the data directory. */
const embedded = {
  env: {},
  heldMs: 0,
  /** How far events were written, and how far `relay` has marked them, in what a service left. */
  async look(dataDir, relay) {
    const folder = temporaryFolder();
    try {
      cpSync(dataDir, folder, { recursive: true });
      return inStore(folder, (store) => {
        const committed = store.prepare('SELECT coalesce(max(sequence), 0) FROM outbox').pluck().get();
        const marked = store.prepare('SELECT position FROM relays WHERE name = ?').pluck().get(relay);
        return { committed, marked: marked ?? 0 };
      });
    } finally {
      removeFolder(folder);
    }
  },
  /** The value that a query answers, in what a service has at the moment or left. */
  async value(dataDir, sql) {
    return inStore(dataDir, (store) => store.prepare(sql).pluck().get(), { readonly: true });
  },
  async close() {},
};

/** A PostgreSQL of its own. */
async function startPostgres() {
  const server = new PostgresServer(await freePort());
  server.make();
  await server.start();
  await server.run('create database latchkey');
  return {
    // For so long nobody relays after who did was killed: it might be a node that is only slow (EVENT-22).
    heldMs: 60_000,
    env: { DATABASE_URL: `postgres://postgres@${server.address}/latchkey`, ENCRYPTION_KEY: encryptionKey },
    async look(_, relay) {
      const [row] = await server.run(
        `select (select coalesce(max(sequence), 0)::int from outbox) as committed,
                (select position::int from relays where name = '${relay}') as marked`,
        'latchkey',
      );
      return { committed: row.committed, marked: row.marked ?? 0 };
    },
    async value(_, sql) {
      const [row] = await server.run(sql, 'latchkey');
      return Number(Object.values(row)[0]);
    },
    close: () => server.close(),
  };
}

/** What every node of a store in PostgreSQL is given. */
export const encryptionKey = '4c61746368646f6f72206b6579206f66206120647269'.padEnd(64, '70');

/** By the name that `--store` gives it, what starts a store: the variables of its services, `look`, `value` and `close`. */
export const stores = { sqlite: async () => embedded, postgres: startPostgres };
