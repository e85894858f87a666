import { type Clock, systemClock } from '../../../server/src/base/clock.ts';
import type { Config } from '../../../server/src/config/config.ts';
import type { Database } from '../../../server/src/db/database.ts';
import { holdsStore, prepareDataDir } from '../../../server/src/db/files/data-dir.ts';
import { openPostgres } from '../../../server/src/db/postgres/postgres.ts';
import { hasSchema, migrate, requireCurrentSchema } from '../../../server/src/db/schema/migrate.ts';
import { openSqlite } from '../../../server/src/db/sqlite/sqlite.ts';
import { openEncryption } from '../../../server/src/keys/encryption.ts';
import { type KeyPlace, keyFile } from '../../../server/src/keys/key-place.ts';
import { keyPlaceOf } from '../../../server/src/keys/store-key-place.ts';

async function openDatabase({ databaseUrl, dataDir }: Config): Promise<{ db: Database; isNew: boolean }> {
  if (databaseUrl) {
    const db = await openPostgres(databaseUrl);
    return { db, isNew: !(await hasSchema(db)) };
  }
  const isNew = !holdsStore(dataDir);
  if (isNew) prepareDataDir(dataDir);
  return { db: openSqlite(dataDir), isNew };
}

/** Opens the store of the configuration, which is made where there is none. Throws StartupError for one of another schema. */
export async function openSeedStore(config: Config): Promise<Database> {
  const { db, isNew } = await openDatabase(config);
  try {
    await (isNew ? migrate(db, systemClock) : requireCurrentSchema(db));
    return db;
  } catch (error) {
    await db.close();
    throw error;
  }
}

/** Returns the storage of the keys that a token is signed with. */
export function seedKeys(
  { db, clock }: { readonly db: Database; readonly clock: Clock },
  { dataDir, encryptionKey: key }: Config,
): KeyPlace {
  // Only a shared store keeps them encrypted; the key for that is made at the first start of a server elsewhere.
  if (!db.isShared) return keyFile(dataDir);
  prepareDataDir(dataDir);
  return keyPlaceOf({ db, clock, dataDir, encryption: openEncryption({ dataDir, key }) });
}
