import { cpSync } from 'node:fs';
import { PostgresServer } from '../harness/postgres-server.ts';
import { removeFolder, temporaryFolder } from '../harness/processes.ts';
import { inStore } from './embedded-store.ts';

/** How far events were written, and how far a relay has marked them. */
interface Progress {
  readonly committed: number;
  readonly marked: number;
}

/** What services keep their data in. */
export interface Store {
  /** The variables of its services. */
  readonly env: Readonly<Record<string, string>>;
  /** How long nothing is sent after the process that sent was killed. */
  readonly heldMs: number;
  /** How far events were written and marked, in what a service left. */
  progress(dataDir: string, relay: string): Promise<Progress>;
  /** The number that a query returns, in what a service has at the moment or left. */
  value(dataDir: string, sql: string): Promise<number>;
  close(): Promise<void>;
}

/** The store in the data directory. */
const embedded: Store = {
  env: {},
  heldMs: 0,
  async progress(dataDir, relay) {
    const folder = temporaryFolder();
    try {
      cpSync(dataDir, folder, { recursive: true });
      return inStore(folder, (store) => {
        const committed = store.prepare('SELECT coalesce(max(sequence), 0) FROM outbox').pluck().get();
        const marked = store.prepare('SELECT position FROM relays WHERE name = ?').pluck().get(relay);
        return { committed: Number(committed), marked: Number(marked ?? 0) };
      });
    } finally {
      removeFolder(folder);
    }
  },
  async value(dataDir, sql) {
    return inStore(dataDir, (store) => Number(store.prepare(sql).pluck().get()), { readonly: true });
  },
  async close() {},
};

/** What every node of a store in PostgreSQL is given. */
export const encryptionKey = '4c61746368646f6f72206b6579206f66206120647269'.padEnd(64, '70');

/** A PostgreSQL of its own. */
async function startPostgres(): Promise<Store> {
  const server = await PostgresServer.begin({ isDurable: true });
  await server.run('create database latchkey');
  return {
    // The one that was killed might be a node that is only slow (EVENT-22).
    heldMs: 60_000,
    env: { DATABASE_URL: server.url('latchkey'), ENCRYPTION_KEY: encryptionKey },
    async progress(_, relay) {
      const [row] = await server.run(
        `select (select coalesce(max(sequence), 0)::int from outbox) as committed,
                (select position::int from relays where name = '${relay}') as marked`,
        'latchkey',
      );
      return { committed: Number(row?.['committed']), marked: Number(row?.['marked'] ?? 0) };
    },
    async value(_, sql) {
      const [row = {}] = await server.run(sql, 'latchkey');
      return Number(Object.values(row)[0]);
    },
    close: () => server.close(),
  };
}

/** What starts a store, by the name that `--store` gives it. */
export const stores = { sqlite: async () => embedded, postgres: startPostgres };

/** A name that `--store` takes. */
export type StoreName = keyof typeof stores;
