import { writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { isLeast } from './budgets.ts';
import { details } from './details.ts';
import { undisturbedCpuShare, undisturbedLateMs, undisturbedWaitShare } from './outcomes.ts';
import { cores } from './pinned.ts';

const resultsFile = new URL('./results.json', import.meta.url);

function significant(number) {
  return number >= 10 ? number.toFixed(1) : number.toPrecision(3);
}

function verdict({ unmeasured, holds: kept, disturbed }) {
  if (unmeasured !== undefined) return 'not measured';
  if (kept === null) return '-';
  return (kept ? 'yes' : 'no') + (disturbed ? '?' : '');
}

const rate = (side) => `${Math.round(side.requestsPerSecond)} req/s`;
const latency = (side) => `${side.p50Ms.toFixed(2)} / ${side.p99Ms.toFixed(2)}`;
const latencies = ({ ours, peers }) => ({ 'p50 / p99 ms': latency(ours), 'peer p50 / p99 ms': latency(peers) });

function ratesOf(outcome) {
  return {
    ours: rate(outcome.ours),
    'peer does': rate(outcome.peers),
    ratio: significant(outcome.ratio),
    'by CPU': outcome.cpuRatio === null ? '-' : significant(outcome.cpuRatio),
    ...latencies(outcome),
  };
}

const cellsOf = {
  load: ratesOf,
  calls: ratesOf,
  cpu: ({ microseconds }) => ({ ours: `${microseconds.toFixed(2)} us` }),
  turns: (outcome) => ({
    ours: `${outcome.ours.p99Ms.toFixed(2)} ms`,
    'peer does': `${outcome.peers.p99Ms.toFixed(2)} ms`,
    ratio: significant(outcome.ratio),
    ...latencies(outcome),
  }),
  list: ({ value, unit }) => ({ ours: `${unit === 'statements' ? value : significant(value)} ${unit}` }),
  invite: ({ value, unit }) => ({ ours: `${significant(value)} ${unit}` }),
  growth: ratesOf,
  figure: ({ value, unit }) => ({ ours: `${Number.isInteger(value) ? value : significant(value)} ${unit}` }),
  relay: ({ value, unit }) => ({ ours: `${Math.round(value)} ${unit}` }),
  statements: ({ value, unit }) => ({ ours: `${value} ${unit}` }),
  timing: ({ value, knownMs, unknownMs }) => ({
    ours: `${knownMs.toFixed(2)} ms`,
    'peer does': `${unknownMs.toFixed(2)} ms`,
    ratio: `${value.toFixed(1)} %`,
  }),
};

const budgetUnits = Object.assign(
  { load: '', cpu: ' us', turns: '', list: '', invite: '' },
  { relay: '', statements: '', timing: '', calls: '', growth: '', figure: '' },
);

function budgetText(row) {
  const { kind, budget, unit } = row;
  if (budget === null) return '-';
  return `${isLeast(row) ? '>=' : '<='} ${budget}${unit === undefined ? budgetUnits[kind] : ` ${unit}`}`;
}

function cells(outcome) {
  const measured = outcome.unmeasured === undefined ? cellsOf[outcome.kind](outcome) : {};
  const { id, what, peer } = outcome;
  return { row: id, what, peer, budget: budgetText(outcome), holds: verdict(outcome), ...measured };
}

const columns = [
  ...['row', 'what', 'peer', 'ours', 'peer does', 'ratio', 'by CPU', 'budget', 'holds'],
  ...['p50 / p99 ms', 'peer p50 / p99 ms'],
];

function warnings(outcomes) {
  const disturbed = (kinds) => {
    const found = outcomes.filter((outcome) => outcome.disturbed && kinds.includes(outcome.kind));
    return found.map(({ id }) => id).join(', ');
  };
  const [load, turns, invite] = [disturbed(['load', 'calls', 'growth']), disturbed(['turns']), disturbed(['invite'])];
  return [
    ...(load === ''
      ? []
      : [
          `${load}: a server got less than ${undisturbedCpuShare * 100} % of its core, so the machine was not quiet: trust "by CPU" more`,
        ]),
    ...(turns === ''
      ? []
      : [
          `${turns}: without the work the server waited for a core more than ${undisturbedWaitShare * 100} % of the time or the generator was more than ${undisturbedLateMs} ms late, so the machine was not quiet`,
        ]),
    ...(invite === ''
      ? []
      : [
          `${invite}: the service or the mail server waited for a core more than ${undisturbedWaitShare * 100} % of the time, so the machine was not quiet`,
        ]),
  ];
}

/** The outcomes as a table of plain text, with lines below it: why a row is missing, what disturbed it, further details. */
export function table(outcomes) {
  const missing = outcomes.filter((outcome) => outcome.unmeasured !== undefined);
  const reasons = missing.map(({ id, what, unmeasured }) => `${id} (${what}) could not be measured: ${unmeasured}`);
  const measured = outcomes.filter((outcome) => outcome.unmeasured === undefined);
  return [aligned(outcomes), ...warnings(outcomes), ...reasons, ...measured.flatMap(details)].join('\n');
}

function aligned(outcomes) {
  const lines = [columns, ...outcomes.map(cells).map((line) => columns.map((column) => line[column] ?? '-'))];
  const widths = columns.map((_, index) => Math.max(...lines.map((line) => line[index].length)));
  return lines.map((line) => line.map((cell, index) => cell.padEnd(widths[index])).join('  ')).join('\n');
}

/** Everything that was measured, with what is needed to judge it; also written to bench/results.json. */
export function writeResults({ options, outcomes, rounds }) {
  const results = {
    measuredAt: new Date().toISOString(),
    machine: { node: process.version, processor: cpus()[0]?.model ?? 'unknown', cores: cpus().length, pinned: cores },
    seconds: options.seconds,
    rows: outcomes,
    rounds,
  };
  writeFileSync(resultsFile, `${JSON.stringify(results, null, 2)}\n`);
  return results;
}
