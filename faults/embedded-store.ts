import { join } from 'node:path';
import Sqlite from 'better-sqlite3';

/** What `work` makes of the embedded store in a data directory; with `readonly` it changes nothing there. */
export function inStore<T>(dataDir: string, work: (store: Sqlite.Database) => T, { readonly = false } = {}): T {
  const store = new Sqlite(join(dataDir, 'latchkey.db'), { readonly });
  try {
    return work(store);
  } finally {
    store.close();
  }
}
