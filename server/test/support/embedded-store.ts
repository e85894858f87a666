import { join } from 'node:path';
import Sqlite from 'better-sqlite3';

/** A connection to the embedded store of a directory, whatever other tests run on. Close it. */
export function embeddedStore(dataDir: string): Sqlite.Database {
  return new Sqlite(join(dataDir, 'latchkey.db'), { fileMustExist: true });
}
