import { writeFileSync } from 'node:fs';
import { aligned, machine } from '../harness/report.ts';
import { isLeast } from './budgets.ts';
import { undisturbedCpuShare, undisturbedLateMs, undisturbedWaitShare } from './outcomes.ts';
import { cores } from './pinned.ts';
import type { Outcome, Row } from './rows.ts';

const resultsFile = new URL('./results.json', import.meta.url);

function verdict({ unmeasured, consume: holds, seen }: Outcome): string {
  if (unmeasured !== undefined) return 'not measured';
  if (holds === null) return '-';
  return (holds ? 'yes' : 'no') + (seen?.isDisturbed ? '?' : '');
}

const units: Readonly<Record<string, string>> = { cpu: ' us' };

function budgetText(row: Row): string {
  const { kind, budget, unit } = row;
  if (budget === null) return '-';
  return `${isLeast(row) ? '>=' : '<='} ${budget}${unit === undefined ? (units[kind] ?? '') : ` ${unit}`}`;
}

const measuredColumns = ['ours', 'peer does', 'ratio', 'by CPU'];
const columns = ['row', 'what', 'peer', ...measuredColumns, 'budget', 'holds', 'p50 / p99 ms', 'peer p50 / p99 ms'];

function cells(outcome: Outcome): readonly string[] {
  const { row, seen } = outcome;
  const { ours = '-', peerDoes = '-', ratio = '-', byCpu = '-', latencies = '-', peerLatencies = '-' } = seen ?? {};
  const measured = [ours, peerDoes, ratio, byCpu];
  return [row.id, row.what, row.peer ?? '-', ...measured, budgetText(row), verdict(outcome), latencies, peerLatencies];
}

const noCore = `waited for a core more than ${undisturbedWaitShare * 100} % of the time`;
/** What disturbed rows of these kinds mean. */
const disturbances = [
  {
    kinds: ['load', 'calls', 'growth'],
    text: `a server got less than ${undisturbedCpuShare * 100} % of its core, so the machine was not quiet: trust "by CPU" more`,
  },
  {
    kinds: ['turns'],
    text: `without the work the server ${noCore} or the generator was more than ${undisturbedLateMs} ms late, so the machine was not quiet`,
  },
  { kinds: ['invite'], text: `the service or the mail server ${noCore}, so the machine was not quiet` },
];

function warnings(outcomes: readonly Outcome[]): readonly string[] {
  return disturbances.flatMap(({ kinds, text }) => {
    const found = outcomes.filter(({ row, seen }) => seen?.isDisturbed && kinds.includes(row.kind));
    return found.length === 0 ? [] : [`${found.map(({ row }) => row.id).join(', ')}: ${text}`];
  });
}

/** The outcomes as a table of plain text, with lines below it: why a row is missing, what disturbed it, further details. */
export function table(outcomes: readonly Outcome[]): string {
  const reasons = outcomes.flatMap(({ row: { id, what }, unmeasured }) =>
    unmeasured === undefined ? [] : [`${id} (${what}) could not be measured: ${unmeasured}`],
  );
  const details = outcomes.flatMap(({ row, seen }) => (seen?.lines ?? []).map((line) => `${row.id}: ${line}`));
  return [aligned([columns, ...outcomes.map(cells)]), ...warnings(outcomes), ...reasons, ...details].join('\n');
}

/** Everything that was measured, with what is needed to judge it; also written to bench/results.json. */
export function writeResults(seconds: number, outcomes: readonly Outcome[]) {
  const rows = outcomes.map(({ row, consume: holds, unmeasured, seen }) => {
    return {
      ...row,
      value: seen?.value,
      isDisturbed: seen?.isDisturbed,
      ...Object(seen?.measured),
      unmeasured,
      consume: holds,
    };
  });
  const results = { measuredAt: new Date().toISOString(), machine: { ...machine(), pinned: cores }, seconds, rows };
  writeFileSync(resultsFile, `${JSON.stringify(results, null, 2)}\n`);
  return results;
}
