import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { messageOf } from '../harness/command-line.ts';
import { aligned, machine } from '../harness/report.ts';
import type { readOptions } from './options.ts';
import type { Outcome, RowHead } from './rows.ts';

const resultsFile = new URL('./results.json', import.meta.url);
const shownMax = 5;

type Options = ReturnType<typeof readOptions>;

/** A row of the table, and whether its budget holds. */
export interface Row extends RowHead, Outcome {
  readonly done: string;
  readonly budget: string;
  readonly consume: boolean;
  /** Why it broke off. */
  readonly broke?: string;
}

const faultsOf = ({ faults = [], unmet = [], lost = [], invented = [], disordered = [] }: Outcome) => [
  ...unmet,
  ...faults,
  ...lost,
  ...invented,
  ...disordered,
];

/** The budget of each kind of row, as a sentence. A row of the kind `check` says itself what it expects. */
const budgets = { proof: '0 lost, invented, out of order', mutant: 'found out', check: '' };

const budgetOf = ({ kind, expected }: RowHead) => budgets[kind] || (expected ?? '');

/** A row that was run to its end. A mutant has to be found out, and everything else to have no faults. */
export function rowOf(row: RowHead, outcome: Outcome): Row {
  const found = faultsOf(outcome).length;
  return {
    done: '',
    ...row,
    ...outcome,
    budget: budgetOf(row),
    consume: row.kind === 'mutant' ? found > 0 : found === 0,
  };
}

/** A row that broke off. */
export function brokenRow(row: RowHead, error: unknown): Row {
  return { ...row, done: '', budget: budgetOf(row), consume: false, broke: messageOf(error) };
}

function resultOf(row: Row): string {
  const { kind, lost = [], invented = [], disordered = [], repeated, broke } = row;
  if (broke !== undefined) return 'broke off';
  if (kind === 'mutant') return `${faultsOf(row).length} faults seen`;
  if (kind === 'check') return `${row.faults?.length ?? 0} faults`;
  const again = repeated === undefined ? '' : `, ${repeated} repeated`;
  return `${lost.length} lost, ${invented.length} invented, ${disordered.length} out of order${again}`;
}

function cells(row: Row): readonly string[] {
  const { id, what, broker = '-', done, budget, consume: holds } = row;
  return [id, what, broker, done, resultOf(row), budget, holds ? 'yes' : 'NO'];
}

function faultLines(row: Row): readonly string[] {
  if (row.kind === 'mutant' && row.broke === undefined) return [];
  const faults = [...(row.broke === undefined ? [] : [row.broke]), ...faultsOf(row)];
  const more = faults.length > shownMax ? [`and ${faults.length - shownMax} more`] : [];
  return [...faults.slice(0, shownMax), ...more].map((fault) => `${row.id}: ${fault}`);
}

/** The rows as a table of plain text, with lines below it: what went wrong, and further details. */
export function table(rows: readonly Row[]): string {
  const columns = ['row', 'what', 'broker', 'done', 'result', 'budget', 'holds'];
  const notes = rows.flatMap(({ id, note }) => (note === undefined ? [] : [`${id}: ${note}`]));
  return [aligned([columns, ...rows.map(cells)]), ...rows.flatMap(faultLines), ...notes].join('\n');
}

/** Everything that was seen. */
interface Results {
  readonly consume: boolean;
  readonly options: Options;
  readonly rows: readonly Row[];
}

/** Everything that was seen, with what is needed to judge it. */
export function resultsOf(options: Options, rows: readonly Row[]): Results {
  const results = {
    ranAt: new Date().toISOString(),
    machine: machine(),
    options,
    consume: rows.every((row) => row.consume),
    rows,
  };
  return results;
}

/** Puts the results in their place in faults/results.json: that of the suite, or of its mutants. */
export function writeResults(results: Results): void {
  const { suite, mutants, store } = results.options;
  const name = store === 'sqlite' ? suite : `${suite} on ${store}`;
  const place = mutants ? `${name} mutants` : name;
  const known = existsSync(resultsFile) ? JSON.parse(readFileSync(resultsFile, 'utf8')) : {};
  writeFileSync(resultsFile, `${JSON.stringify({ ...known, [place]: results }, null, 2)}\n`);
}
