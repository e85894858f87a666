import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { byName, root } from './steps.mjs';

/** Whatever reaches these by its imports touches a store. */
const storeMakers = ['server/test/support/test-store.ts'];
/** Whatever reaches these is about PostgreSQL, and runs there only. */
const postgresMakers = ['server/test/support/postgres-place.ts', 'server/test/support/two-nodes.ts'];

/** Tests of the embedded store itself, or of parts that exist with it only, and the reasons. */
const embeddedOnly = {
  'server/src/keys/rotate-encryption.test.ts': 'the key file of the data directory',
  'server/src/db/write-health.test.ts': 'whether the embedded store writes',
  'server/src/http/server/load-shedder.test.ts': 'a load on the process, whatever its store',
  'server/src/db/sqlite/stream-reader.test.ts': 'how SQLite reads lists',
  'server/src/db/schema/migrate.test.ts': 'migrations of SQLite, and of stores of earlier releases',
  'server/src/db/sqlite/sqlite.test.ts': 'the embedded store itself',
  'server/src/db/sqlite/sqlite-files.test.ts': 'its files',
  'server/test/process/audit-upgrade.test.ts': 'a store of an earlier release, which was SQLite',
  'server/test/process/data-dir-modes.test.ts': 'the modes of its files',
  'server/test/process/data-dir.test.ts': 'its file, damaged and unreadable',
  'server/test/process/drill-failover.test.ts': 'fault injection, which makes its store itself',
  'server/test/process/drill.test.ts': 'fault injection, which makes its stores itself',
  'server/test/http/list-memory.test.ts': 'how much memory SQLite takes for a list',
  'server/test/process/mail-key-file.test.ts': 'the key file of the data directory',
  'server/test/process/org-full-disk.test.ts': 'a full disk below SQLite',
  'server/test/process/upgrade.test.ts': 'a store of the first release, which was SQLite',
};

/** Slow tests that use a store which is not part of what they prove. */
const storeIsNoMatter = {
  'server/test/abuse/abuse-connector.test.ts': 'the connector, which asks no store',
  'server/test/abuse/abuse-http.test.ts': 'what is refused before any store is asked',
  'server/test/abuse/abuse-picture-shapes.test.ts': 'pictures that are refused before any store is asked',
  'server/test/abuse/abuse-slow.test.ts': 'connections that are closed before any store is asked',
  'server/test/process/connector-command.test.ts': 'the connector, which asks no store',
  'server/test/http/connector-directory.test.ts': 'the connector, which asks no store',
  'server/test/http/connector-operations.test.ts': 'the connector, which asks no store',
  'server/test/http/docs-browser.test.ts': 'a page in a browser',
  'server/test/outside-clients/conformance.test.ts': 'the protocol, as its makers test it',
  'server/test/outside-clients/inspector.test.ts': 'the protocol, by a client that is started anew for each call',
  'server/test/http/reset-page-browser.test.ts': 'a page in a browser',
};

/** Of the files that touch a store, those that every run has on PostgreSQL: together they reach every statement. */
const postgresFiles = JSON.parse(readFileSync(join(root, 'scripts/postgres-files.json'), 'utf8'));

/** Slow tests that prove little more than cheaper ones, and the reasons: not in every run. */
const onlyInAll = {
  'server/test/process/drill.test.ts':
    'fault injection in short form; process-kill and the tests of relays have the same kinds of faults',
  'server/test/process/drill-failover.test.ts':
    'fault injection in short form; postgres-failover has the same kinds of faults',
};

/** Commands with `--data-dir` work on an embedded store; those of an import are given the store that a test runs on. */
const ofCommand = 'a command on a data directory';
const importMakers = ['cli/test/import-world.ts'];

/** Requests at the same time: in how they lock, the two stores differ most. These run on PostgreSQL in every run, too. */
const isOfRaces = (/** @type {string} */ file) => /\braces-|-races\b/.test(file);

const importing = /^(?:import|export)\s(?:[^'"]*?\sfrom\s)?['"](\.[^'"]+)['"]|\bimport\(\s*['"](\.[^'"]+)['"]/gm;
/** @type {Map<string, readonly string[]>} */
const imports = new Map();

/** The files of this project that a file imports, types left out. */
function importsOf(/** @type {string} */ file) {
  const known = imports.get(file);
  if (known) return known;
  const text = readFileSync(join(root, file), 'utf8').replace(/^import type [^;]+;/gm, '');
  const found = [...text.matchAll(importing)].map(([, first, second]) => join(dirname(file), first ?? second ?? ''));
  imports.set(file, found);
  return found;
}

function reaches(/** @type {string} */ file, /** @type {readonly string[]} */ makers) {
  const reached = reachedBy(file, (next) => makers.includes(next));
  return makers.some((maker) => reached.has(maker));
}

function testFiles() {
  return ['server/test', 'server/src', 'cli']
    .flatMap((folder) => readdirSync(join(root, folder), { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile() && entry.name.endsWith('.test.ts') && !entry.parentPath.includes('node_modules'))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .sort(byName);
}

/**
 * Returns the test files of each store, those that run on PostgreSQL whatever is chosen (`givenOnPostgres`), and the
 * reasons why those that use a store run on the embedded one only.
 * @param isWhole every file runs, and PostgreSQL gets all that use a store, not only those of `postgres-files.json`
 */
export function testStores(/** @type {boolean} */ isWhole) {
  const every = testFiles();
  const all = isWhole ? every : every.filter((file) => !(file in onlyInAll));
  /** @type {Record<string, string>} */
  const reasons = { ...embeddedOnly, ...storeIsNoMatter };
  const named = [reasons, onlyInAll].flatMap((list) => Object.keys(list));
  const gone = [...named, ...postgresFiles].filter((file) => !every.includes(file));
  if (gone.length > 0) throw new Error(`The lists of test files name what is not there: ${gone.join(', ')}`);
  const touching = all.filter((file) => reaches(file, storeMakers));
  const postgresOnly = touching.filter((file) => reaches(file, postgresMakers));
  const ofData = (/** @type {string} */ file) =>
    file.startsWith('cli/') && !postgresOnly.includes(file) && !reaches(file, importMakers);
  for (const file of touching.filter(ofData)) reasons[file] = ofCommand;
  const both = touching.filter((file) => !(file in reasons));
  const givenOnPostgres = both.filter((file) => postgresOnly.includes(file) || isOfRaces(file));
  const isInEachRun = (/** @type {string} */ file) => givenOnPostgres.includes(file) || postgresFiles.includes(file);
  return { all, onPostgres: isWhole ? both : both.filter(isInEachRun), postgresOnly, givenOnPostgres, reasons };
}

/** Says what ran on which store and, where every file was to run on both, which did not run on PostgreSQL, and why. */
export function tellStores(
  /** @type {import('./test-records.mjs').Records} */ { files },
  /** @type {boolean} */ isWhole,
) {
  const projects = new Set(files.map(({ project }) => project));
  const lines = Array.from(projects, (name) => {
    const own = files.filter(({ project }) => project === name);
    const tests = own.reduce((sum, file) => sum + file.tests.length, 0);
    return `${name}: ${tests} tests in ${own.length} files`;
  });
  const ran = new Set(files.map(({ file }) => file));
  const apart = isWhole ? Object.entries(testStores(true).reasons).filter(([file]) => ran.has(file)) : [];
  if (apart.length > 0) lines.push(`of these, ${apart.length} that touch a store are for the embedded one only:`);
  for (const [file, reason] of apart) lines.push(`  ${file}: ${reason}`);
  return lines.map((line) => `${line}\n`).join('');
}

/** The files that each test file reaches by its imports, without going further at those that `isEnd` names. */
export function reachedBy(/** @type {string} */ file, /** @type {(file: string) => boolean} */ isEnd) {
  /** @type {Set<string>} */
  const seen = new Set();
  const waiting = [file];
  for (const next of waiting) {
    if (seen.has(next)) continue;
    seen.add(next);
    if (next.endsWith('.ts') && !isEnd(next)) waiting.push(...importsOf(next));
  }
  return seen;
}
