import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import type Sqlite from 'better-sqlite3';
import type { Json } from '../harness/api-client.ts';
import { removeFolder } from '../harness/processes.ts';
import { buildOf } from './builds.ts';
import { inStore } from './embedded-store.ts';
import { oldStore } from './migrations.ts';
import type { Given, Outcome, SuiteRow } from './rows.ts';
import { Service } from './service.ts';
import { auditFaults } from './witness.ts';

const atMs = Date.UTC(2026, 10, 2);
const rowsEach = 2;
const sizes = { users: 300, tokens: 2_500 };
/** What a token's use at this start writes. */
const written = ['personal_access_tokens.last_used_at'];

type TableRow = Readonly<Record<string, unknown>>;

const stepsOf = (entry: string) => {
  const folder = join(buildOf(entry), 'server/src/db/schema/migrations');
  const files = readdirSync(folder).filter((name) => /^\d{4}-.*\.js$/.test(name));
  return files.sort().map((file) => ({ name: file.slice(5, -3), path: join(folder, file) }));
};

/** Takes the store of the first release through the steps of the releases after it, up to one of them. */
async function bringTo(version: number, { entry, dataDir }: { entry: string; dataDir: string }): Promise<void> {
  const { openSqlite } = await import(join(buildOf(entry), 'server/src/db/sqlite/sqlite.js'));
  const db = openSqlite(dataDir);
  try {
    for (const [place, { name, path }] of stepsOf(entry).slice(0, version).entries()) {
      if (place === 0) continue;
      const { up } = await import(path);
      await db.transaction(async (tx: Json) => {
        await up(tx);
        await tx
          .insertInto('schema_migrations')
          .values({ version: place + 1, name, applied_at: atMs })
          .execute();
      });
    }
  } finally {
    await db.close();
  }
}

interface Column {
  readonly name: string;
  readonly type: string;
}

interface ForeignKey {
  readonly table: string;
  readonly from: string;
  readonly to: string;
}

/** A value for a column of a table that nothing is known of. */
function valueFor({ name, type }: Column, { number, key }: { number: number; key: unknown }): unknown {
  if (key !== undefined) return key;
  if (name.endsWith('_at') || name.endsWith('_until')) return atMs + number;
  if (/INT/i.test(type)) return number;
  return name === 'id' ? (900_000 + number).toString(16).padStart(24, '0') : `made ${name} ${number}`;
}

const tablesOf = (store: Sqlite.Database) =>
  store.prepare<[], string>("SELECT name FROM sqlite_master WHERE type = 'table'").pluck().all();

const keysOf = (store: Sqlite.Database, table: string): readonly ForeignKey[] =>
  store.prepare<[string], ForeignKey>('SELECT * FROM pragma_foreign_key_list(?)').all(table);

/** A checkpoint that is made up is a forged one: `audit verify` is right to refuse it. */
const unfilled = ['audit_checkpoints'];

/** Rows for every other table that has none, so that each table of a release has something to lose. */
function fillEmpty(store: Sqlite.Database): void {
  const isEmpty = (name: string) => store.prepare(`SELECT count(*) FROM "${name}"`).pluck().get() === 0;
  let left = tablesOf(store).filter((name) => !unfilled.includes(name) && isEmpty(name));
  while (left.length > 0) {
    // Those that others refer to come first.
    const next = left.find((name) => keysOf(store, name).every(({ table }) => table === name || !left.includes(table)));
    if (next === undefined) throw new Error(`tables refer to each other in a circle: ${left.join(', ')}`);
    const keys = new Map(keysOf(store, next).map((key) => [key.from, key]));
    const columns = store.prepare<[string], Column>('SELECT * FROM pragma_table_info(?)').all(next);
    for (let number = 1; number <= rowsEach; number += 1) {
      const values = columns.map((column) => {
        const key = keys.get(column.name);
        const known = key && store.prepare(`SELECT "${key.to}" FROM "${key.table}" LIMIT ${rowsEach}`).pluck().all();
        return valueFor(column, { number, key: known?.[number % known.length] });
      });
      const marks = columns.map(() => '?').join(', ');
      store.prepare(`INSERT INTO "${next}" VALUES (${marks})`).run(values);
    }
    left = left.filter((name) => name !== next);
  }
}

/** Every row of every table, in an order of its own. */
function rowsOf(store: Sqlite.Database): ReadonlyMap<string, readonly TableRow[]> {
  const all = (name: string) => store.prepare<[], TableRow>(`SELECT * FROM "${name}" ORDER BY rowid`).all();
  return new Map(tablesOf(store).map((name) => [name, all(name)]));
}

/** The values of a row, with JSON read: its spelling may change. */
const parsed = (row: TableRow): TableRow =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      typeof value === 'string' && /^[{[]/.test(value) ? JSON.parse(value) : value,
    ]),
  );

/** What is gone or has another value; that there is more is no loss. */
function lostRows(before: ReturnType<typeof rowsOf>, after: ReturnType<typeof rowsOf>): readonly string[] {
  const faults: string[] = [];
  for (const [table, rows] of before) {
    const kept = after.get(table);
    if (!kept) {
      faults.push(`the table ${table} is gone`);
      continue;
    }
    for (const [place, row] of rows.entries()) {
      const [was, is] = [parsed(row), parsed(kept[place] ?? {})];
      const others = Object.keys(was).filter(
        (name) => !written.includes(`${table}.${name}`) && !isDeepStrictEqual(was[name], is[name]),
      );
      if (others.length > 0) faults.push(`${table}, row ${place + 1} of ${rows.length}: ${others.join(', ')} changed`);
    }
  }
  return faults;
}

async function opens(version: number, entry: string) {
  const { dataDir, token } = oldStore(sizes);
  await bringTo(version, { entry, dataDir });
  const before = inStore(dataDir, (store) => {
    fillEmpty(store);
    return rowsOf(store);
  });
  const keys = readFileSync(join(dataDir, 'signing-keys.json'), 'utf8');
  const service = new Service({ entry, dataDir });
  await service.start();
  const faults: string[] = [];
  const { body: users } = await service.ask('GET', '/users', { token });
  const userList = before.get('users')?.length;
  if (users.length !== userList) faults.push(`${users.length} of ${userList} users are listed`);
  const events = await service.events();
  const outbox = [...(before.get('outbox') ?? [])].sort(
    (one, other) => Number(one['sequence']) - Number(other['sequence']),
  );
  const told = outbox.map(({ id, sequence, payload }) => ({ id, sequence, payload: JSON.parse(String(payload)) }));
  const same = events.map(({ id, sequence, payload }) => ({ id, sequence, payload }));
  if (!isDeepStrictEqual(same, told)) faults.push('the events are others');
  await service.stop();
  const after = inStore(dataDir, rowsOf);
  faults.push(...lostRows(before, after));
  if (readFileSync(join(dataDir, 'signing-keys.json'), 'utf8') !== keys) faults.push('the keys are others');
  const steps = stepsOf(entry).length;
  if (after.get('schema_migrations')?.length !== steps) faults.push('not every step is noted');
  faults.push(...auditFaults(entry, dataDir));
  removeFolder(dirname(dataDir));
  const rows = [...before.values()].reduce((sum, { length }) => sum + length, 0);
  return { faults: faults.map((fault) => `schema ${version}: ${fault}`), rows, tables: before.size };
}

/** All there were, or the first and the last but one. */
function versionsOf(entry: string, short: boolean): readonly number[] {
  const newest = stepsOf(entry).length;
  return short ? [1, newest - 1] : Array.from({ length: newest }, (_, place) => place + 1);
}

/** R10: stores of every schema that there ever was, each with something in all its tables, are opened. */
export async function openEverySchema({ entry, tell }: Given, versions: readonly number[]): Promise<Outcome> {
  const faults: string[] = [];
  const done: number[] = [];
  for (const version of versions) {
    const outcome = await opens(version, entry);
    tell(`R10: schema ${version}: ${outcome.rows} rows in ${outcome.tables} tables, ${outcome.faults.length} faults`);
    faults.push(...outcome.faults);
    done.push(version);
  }
  return { faults, done: `schemas ${done.join(', ')}` };
}

/** The rows of the upgrade suite. */
export const upgradeRows: readonly SuiteRow[] = [
  {
    id: 'R10',
    what: 'the store of every earlier schema',
    expected: 'opens, nothing lost',
    run: (options) => openEverySchema(options, versionsOf(options.entry, options.short)),
  },
];
