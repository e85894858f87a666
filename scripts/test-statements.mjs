import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { byName, root } from './steps.mjs';

// Each run has only part of the test files on PostgreSQL. What makes that enough is checked here: every statement of the
// product that some test ran on the embedded store ran on PostgreSQL too, in the same run.

/** @typedef {{ files: readonly Pick<import('./test-records.mjs').FileRecord, 'project' | 'file' | 'ms' | 'statements'>[] }} Ran */

const chosenFile = join(root, 'scripts/postgres-files.json');

/** Code whose statements PostgreSQL never gets, and why. */
const embeddedOnly = [
  { code: 'server/src/operator/restoring/', why: 'puts a back-up in the place of an embedded store' },
  { code: 'server/src/db/schema/migrations/', why: 'data of stores of earlier releases, which were SQLite' },
  { code: 'server/src/db/schema/migrate.ts isCompatible', why: 'asks about releases that came after this one' },
  { code: 'server/src/db/move/moved.ts', why: 'an embedded store that was moved to PostgreSQL' },
];

const isEmbeddedOnly = (/** @type {string} */ statement) => embeddedOnly.some(({ code }) => statement.startsWith(code));

function statementsOn(/** @type {string} */ project, /** @type {Ran} */ { files }) {
  return new Set(files.filter((file) => file.project === project).flatMap(({ statements }) => statements));
}

/** One text for each statement that tests reached on the embedded store and not on PostgreSQL, with a file that reached it. */
export function statementsWithoutPostgres(/** @type {Ran} */ records) {
  const onPostgres = statementsOn('postgres', records);
  const missing = [...statementsOn('embedded', records)].filter(
    (statement) => !(onPostgres.has(statement) || isEmbeddedOnly(statement)),
  );
  return missing.sort(byName).map((statement) => {
    const file = records.files.find(({ statements }) => statements.includes(statement))?.file;
    return `Not run on PostgreSQL: ${statement}\n    ${file} runs it; \`npm run test:all -- --record\` adds a file to scripts/postgres-files.json that does\n`;
  });
}

/**
 * Chooses of all files that ran on PostgreSQL some that together reach every statement, those first that reach the most
 * for their time. Those that are given run anyway, and what they reach counts.
 */
export function chooseFiles(/** @type {Ran} */ { files }, /** @type {readonly string[]} */ given) {
  const ran = files.filter(({ project }) => project === 'postgres');
  const anyway = ran.filter(({ file }) => given.includes(file));
  const reached = new Set(anyway.flatMap(({ statements }) => statements));
  const missing = new Set(ran.flatMap(({ statements }) => statements).filter((statement) => !reached.has(statement)));
  const rest = new Set(ran.filter(({ file }) => !given.includes(file)));
  /** @type {string[]} */
  const chosen = [];
  while (missing.size > 0) {
    const worth = (/** @type {Ran['files'][number]} */ { statements, ms }) =>
      statements.filter((one) => missing.has(one)).length / (ms + 200);
    const best = [...rest].reduce((a, b) => (worth(b) > worth(a) ? b : a));
    rest.delete(best);
    for (const statement of best.statements) missing.delete(statement);
    chosen.push(best.file);
  }
  return chosen.sort(byName);
}

/** Writes the choice for the runs to come; answers how many files it has. */
export function recordFiles(/** @type {Ran} */ records, /** @type {readonly string[]} */ given) {
  const chosen = chooseFiles(records, given);
  const before = JSON.parse(readFileSync(chosenFile, 'utf8'));
  const text = `${JSON.stringify(chosen, null, 2)}\n`;
  writeFileSync(chosenFile, text);
  return { before: before.length, now: chosen.length };
}
