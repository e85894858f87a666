import type { StoreConnection } from './store-connection.ts';
import { isOnPostgres } from './test-store.ts';

interface Trigger {
  readonly name: string;
  /** Time and table, as in `AFTER UPDATE OF ended_at ON sessions`. */
  readonly on: string;
  /** A statement, to which the row is known as `new`. */
  readonly does: string;
}

/** Makes the store do something whenever a row changes. */
export function addTrigger(store: StoreConnection, { name, on, does }: Trigger): void {
  if (!isOnPostgres) {
    store.exec(`CREATE TRIGGER ${name} ${on} BEGIN ${does}; END`);
    return;
  }
  store.exec(`CREATE FUNCTION ${name}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN ${does}; RETURN new; END $$`);
  store.exec(`CREATE TRIGGER ${name} ${on} FOR EACH ROW EXECUTE FUNCTION ${name}()`);
}

/** Returns the body of a trigger that rejects a change, with a message. */
export function refusing(message: string): string {
  return isOnPostgres ? `RAISE EXCEPTION '${message}'` : `SELECT RAISE(ABORT, '${message}')`;
}

/** Takes a trigger away again. */
export function dropTrigger(store: StoreConnection, { name, on }: Trigger): void {
  const [, table] = / ON (\w+)/.exec(on) ?? [];
  store.exec(isOnPostgres ? `DROP TRIGGER ${name} ON ${table}` : `DROP TRIGGER ${name}`);
}
