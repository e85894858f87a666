import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { TestApp } from './test-app.ts';

/** The variables of a service on the embedded store, whatever store the tests run on. */
export const embedded = { DATABASE_URL: '', ENCRYPTION_KEY: '' } as const;

type Rows = Record<string, Record<string, unknown>[]>;

/** Every row of an embedded store, by table, in the order of all its columns. */
export function embeddedRows(dataDir: string): Rows {
  const store = new Sqlite(join(dataDir, 'latchkey.db'), { readonly: true });
  try {
    const names = store.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").pluck().all() as string[];
    return Object.fromEntries(
      names.sort().map((name) => [name, store.prepare(`SELECT * FROM "${name}"`).all().sort(byContent)]),
    ) as Rows;
  } finally {
    store.close();
  }
}

/** So that rows of two engines can be compared. */
export function byContent(one: unknown, other: unknown): number {
  return JSON.stringify(one) < JSON.stringify(other) ? -1 : 1;
}

interface Column {
  readonly name: string;
  readonly type: string;
  readonly notnull: number;
  readonly pk: number;
}

/** A row for a table that has none: whatever its columns are, something that another engine could take for something else. */
function fillTable(store: Sqlite.Database, table: string): void {
  const columns = store.prepare(`SELECT * FROM pragma_table_info('${table}')`).all() as Column[];
  const references = store.prepare(`SELECT "from", "table", "to" FROM pragma_foreign_key_list('${table}')`).all() as {
    from: string;
    table: string;
    to: string;
  }[];
  const values = columns.map(({ name, type, notnull, pk }, place) => {
    const reference = references.find(({ from }) => from === name);
    if (reference) return store.prepare(`SELECT "${reference.to}" FROM "${reference.table}" LIMIT 1`).pluck().get();
    if (!notnull && !pk && place % 2 === 0) return null;
    if (/^bigint$/i.test(type)) return Number.MAX_SAFE_INTEGER;
    return /^integer$/i.test(type) ? 1 : `Ünï "${name}" \\ {a,b} 👩‍🚀 \t'x'`;
  });
  const marks = columns.map(() => '?').join(', ');
  store.prepare(`INSERT INTO "${table}" VALUES (${marks})`).run(values);
}

/** Leaves an embedded store with at least one row in every table there is; answers what can be used of it. */
export async function leaveFullStore(dataDir: string): Promise<{ token: string; revoked: string; kids: string[] }> {
  const app = await TestApp.start({ DATA_DIR: dataDir, ...embedded });
  const admin = await app.setUp();
  await app.member(admin, 'grace@example.com', 'Grace "Ünï" 👩‍🚀');
  const smtp = {
    host: 'smtp.example.com',
    from: 'no-reply@example.com',
    username: 'ada',
    password: 'mail-4711-secret',
  };
  await admin.put('/settings/smtp', smtp);
  const [token, revoked] = [await admin.token({ expiryDays: 'never' }), await admin.token()];
  await admin.delete(`/personal-access-tokens/${revoked.tokenId}`);
  const { body } = await app.anonymous.get('//.well-known/jwks.json');
  await app.stop();
  const store = new Sqlite(join(dataDir, 'latchkey.db'));
  const names = store.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").pluck().all() as string[];
  const empty = () => names.filter((name) => store.prepare(`SELECT 1 FROM "${name}" LIMIT 1`).get() === undefined);
  store.pragma('foreign_keys = OFF');
  for (const name of empty()) fillTable(store, name);
  // What referred to a table that was empty then.
  store.exec('UPDATE team_members SET team_id = (SELECT id FROM teams)');
  store.exec('UPDATE service_tokens SET client_id = (SELECT id FROM service_clients)');
  const loose = store.prepare('PRAGMA foreign_key_check').all();
  if (loose.length > 0 || empty().length > 0) throw new Error(`not full: ${JSON.stringify([loose, empty()])}`);
  store.close();
  return {
    token: token.credential ?? '',
    revoked: revoked.credential ?? '',
    kids: body.keys.map(({ kid }: { kid: string }) => kid),
  };
}
