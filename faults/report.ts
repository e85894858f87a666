import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';

const resultsFile = new URL('./results.json', import.meta.url);
const toldMax = 5;

/** The budget of each row, as a sentence, and whether an outcome keeps it. */
const budgets = {
  proof: {
    text: '0 lost, invented, out of order',
    holds: ({ lost, invented, disordered, unmet = [] }) => [lost, invented, disordered, unmet].flat().length === 0,
  },
  mutant: { text: 'found out', holds: ({ found }) => found > 0 },
  /** A row says itself what it expects, and `faults` are the sentences on what was otherwise. */
  check: { text: null, holds: ({ faults }) => faults.length === 0 },
};

const textOf = (row) => budgets[row.kind].text ?? row.expected;

/** A row of the table: `{ id, what, broker, kind, done, ...outcome }`, and whether it holds. */
export function rowOf(row, outcome) {
  return { ...row, ...outcome, budget: textOf(row), holds: budgets[row.kind].holds(outcome) };
}

/** A row that broke off. */
export function brokenRow(row, error) {
  return { ...row, done: '', budget: textOf(row), holds: false, broke: error.message };
}

function resultOf({ kind, lost, invented, disordered, repeated, found, faults, broke }) {
  if (broke !== undefined) return 'broke off';
  if (kind === 'mutant') return `${found} faults seen`;
  if (kind === 'check') return `${faults.length} faults`;
  const again = repeated === undefined ? '' : `, ${repeated} repeated`;
  return `${lost.length} lost, ${invented.length} invented, ${disordered.length} out of order${again}`;
}

const columns = ['row', 'what', 'broker', 'done', 'result', 'budget', 'holds'];

function cells(row) {
  const { id, what, broker = '-', done, budget, holds } = row;
  return [id, what, broker, done, resultOf(row), budget, holds ? 'yes' : 'NO'];
}

function faultLines(row) {
  if (row.kind === 'mutant') return [];
  const faults = [
    ...(row.broke === undefined ? [] : [row.broke]),
    ...(row.unmet ?? []),
    ...(row.faults ?? []),
    ...(row.lost ?? []),
    ...(row.invented ?? []),
    ...(row.disordered ?? []),
  ];
  const more = faults.length > toldMax ? [`and ${faults.length - toldMax} more`] : [];
  return [...faults.slice(0, toldMax), ...more].map((fault) => `${row.id}: ${fault}`);
}

/** The rows as a table of plain text, with lines below it: what went wrong, and further details. */
export function table(rows) {
  const lines = [columns, ...rows.map(cells)];
  const widths = columns.map((_, place) => Math.max(...lines.map((line) => String(line[place]).length)));
  const laidOut = lines.map((line) =>
    line
      .map((cell, place) => String(cell).padEnd(widths[place]))
      .join('  ')
      .trimEnd(),
  );
  const notes = rows.flatMap((row) => (row.note === undefined ? [] : [`${row.id}: ${row.note}`]));
  return [...laidOut, ...rows.flatMap(faultLines), ...notes].join('\n');
}

/** Everything that was seen. */
export function resultsOf(options, rows) {
  const machine = { node: process.version, processor: cpus()[0]?.model ?? 'unknown', cores: cpus().length };
  return { ranAt: new Date().toISOString(), machine, options, holds: rows.every(({ holds }) => holds), rows };
}

/** Puts the results in their place in faults/results.json: that of the suite, or of its mutants. */
export function writeResults(results) {
  const { suite, mutants, store = 'sqlite' } = results.options;
  const name = store === 'sqlite' ? suite : `${suite} on ${store}`;
  const place = mutants ? `${name} mutants` : name;
  const known = existsSync(resultsFile) ? JSON.parse(readFileSync(resultsFile, 'utf8')) : {};
  writeFileSync(resultsFile, `${JSON.stringify({ ...known, [place]: results }, null, 2)}\n`);
}
