import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { buildOf } from './builds.ts';
import { inStore } from './embedded-store.ts';
import { oldStore } from './migrations.ts';
import { removeFolder } from './processes.ts';
import { Service } from './service.ts';
import { auditFaults } from './witness.ts';

const atMs = Date.UTC(2026, 10, 2);
const rowsEach = 2;
const sizes = { people: 300, tokens: 2_500 };
/** What a token's use at this start writes. */
const written = ['personal_access_tokens.last_used_at'];

const stepsOf = (entry) => {
  const folder = join(buildOf(entry), 'server/src/db/schema/migrations');
  const files = readdirSync(folder).filter((name) => /^\d{4}-.*\.js$/.test(name));
  return files.sort().map((file) => ({ name: file.slice(5, -3), path: join(folder, file) }));
};

/** Takes the store of the first release through the steps of the releases after it, up to one of them. */
async function bringTo(version, { entry, dataDir }) {
  const { openSqlite } = await import(join(buildOf(entry), 'server/src/db/sqlite.js'));
  const db = openSqlite(dataDir);
  try {
    for (const [place, { name, path }] of stepsOf(entry).slice(0, version).entries()) {
      if (place === 0) continue;
      const { up } = await import(path);
      await db.transaction(async (tx) => {
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

/** A value for a column of a table that nothing is known of. */
function valueFor({ name, type }, { number, key }) {
  if (key !== undefined) return key;
  if (name.endsWith('_at') || name.endsWith('_until')) return atMs + number;
  if (/INT/i.test(type)) return number;
  return name === 'id' ? (900_000 + number).toString(16).padStart(24, '0') : `made ${name} ${number}`;
}

/** Rows for every table that has none, so that each table of a release has something to lose. */
function fillEmpty(store) {
  const names = store.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").pluck().all();
  let left = names.filter((name) => store.prepare(`SELECT count(*) FROM "${name}"`).pluck().get() === 0);
  while (left.length > 0) {
    // Those that others refer to come first.
    const next = left.find((name) =>
      store.pragma(`foreign_key_list("${name}")`).every(({ table }) => table === name || !left.includes(table)),
    );
    const keys = new Map(store.pragma(`foreign_key_list("${next}")`).map((key) => [key.from, key]));
    const columns = store.pragma(`table_info("${next}")`);
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
function rowsOf(store) {
  const names = store.prepare("SELECT name FROM sqlite_master WHERE type = 'table'").pluck().all();
  return new Map(names.map((name) => [name, store.prepare(`SELECT * FROM "${name}" ORDER BY rowid`).all()]));
}

/** The values of a row, with JSON read: its spelling may change. */
const parsed = (row) =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, /^[{[]/.test(value) ? JSON.parse(value) : value]),
  );

/** What is gone or has another value; that there is more is no loss. */
function lostRows(before, after) {
  const faults = [];
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
      if (others.length > 0) faults.push(`${table}, row ${place + 1} of ${rows.length}: ${others} changed`);
    }
  }
  return faults;
}

async function opens(version, { entry }) {
  const { dataDir, token } = oldStore(sizes);
  await bringTo(version, { entry, dataDir });
  const before = inStore(dataDir, (store) => {
    fillEmpty(store);
    return rowsOf(store);
  });
  const keys = readFileSync(join(dataDir, 'signing-keys.json'), 'utf8');
  const service = new Service({ entry, dataDir });
  await service.start();
  const faults = [];
  const { body: users } = await service.ask('GET', '/users', { token });
  const people = before.get('users').length;
  if (users.length !== people) faults.push(`${users.length} of ${people} users are listed`);
  const events = await service.events();
  const outbox = [...before.get('outbox')];
  const told = outbox.sort((one, other) => one.sequence - other.sequence).map(({ id, sequence, payload }) => ({ id, sequence, payload: JSON.parse(payload) }));
  const same = events.map(({ id, sequence, payload }) => ({ id, sequence, payload }));
  if (!isDeepStrictEqual(same, told)) faults.push('the events are others');
  await service.stop();
  const after = inStore(dataDir, rowsOf);
  faults.push(...lostRows(before, after));
  if (readFileSync(join(dataDir, 'signing-keys.json'), 'utf8') !== keys) faults.push('the keys are others');
  const steps = stepsOf(entry).length;
  if (after.get('schema_migrations').length !== steps) faults.push('not every step is noted');
  faults.push(...auditFaults(entry, dataDir));
  removeFolder(dirname(dataDir));
  const rows = [...before.values()].reduce((sum, { length }) => sum + length, 0);
  return { faults: faults.map((fault) => `schema ${version}: ${fault}`), rows, tables: before.size };
}

/** All there were, or the first and the last but one. */
function versionsOf(entry, short) {
  const newest = stepsOf(entry).length;
  return short ? [1, newest - 1] : Array.from({ length: newest }, (_, place) => place + 1);
}

/** R10: stores of every schema that there ever was, each with something in all its tables, are opened. */
async function everySchema({ entry, short, tell, versions = versionsOf(entry, short) }) {
  const faults = [];
  const done = [];
  for (const version of versions) {
    const outcome = await opens(version, { entry });
    tell(`R10: schema ${version}: ${outcome.rows} rows in ${outcome.tables} tables, ${outcome.faults.length} faults`);
    faults.push(...outcome.faults);
    done.push(version);
  }
  return { faults, done: `schemas ${done.join(', ')}` };
}

/** The rows of the upgrade suite. */
export const upgradeRows = [
  { id: 'R10', what: 'the store of every earlier schema', expected: 'opens, nothing lost', run: everySchema },
];
