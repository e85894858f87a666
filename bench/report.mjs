import { writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { holds } from './budgets.mjs';
import { cores } from './processes.mjs';
import { median } from './statistics.mjs';

const resultsFile = new URL('./results.json', import.meta.url);

/** Below this share of its core a loaded server was held up by something else: the generator or other programs. */
const undisturbedCpuShare = 0.85;

function summary(rounds, name) {
  const of = (field) => median(rounds.map((round) => round[name][field]));
  const serverCpuShare = rounds[0][name].serverCpuShare === null ? null : of('serverCpuShare');
  return { requestsPerSecond: of('requestsPerSecond'), p50Ms: of('p50Ms'), p99Ms: of('p99Ms'), serverCpuShare };
}

function cpuRatioOf(rounds, { subject, peer }) {
  const ratios = rounds.map((round) => round[peer].serverCpuMicroseconds / round[subject].serverCpuMicroseconds);
  return rounds[0][subject].serverCpuMicroseconds === null ? null : median(ratios);
}

/**
 * The outcome of a load row: the median of the rounds' ratios, which the budget is about, and each side's own medians.
 * `cpuRatio` is the same ratio by processor time a request: it hardly changes when other programs take time from the
 * servers, so the two part on a machine that isn't quiet (`disturbed`). It is null where there is no /proc.
 */
export function loadOutcome(row, rounds) {
  const ratios = rounds.map((round) => round[row.subject].requestsPerSecond / round[row.peer].requestsPerSecond);
  const ratio = median(ratios);
  const [ours, peers] = [summary(rounds, row.subject), summary(rounds, row.peer)];
  const disturbed = [ours, peers].some(({ serverCpuShare }) => (serverCpuShare ?? 1) < undisturbedCpuShare);
  return { ...row, ours, peers, ratios, ratio, cpuRatio: cpuRatioOf(rounds, row), disturbed, holds: holds(row, ratio) };
}

/** The outcome of a cpu row; `measured` holds at least `{ microseconds }`. */
export function cpuOutcome(row, measured) {
  return { ...row, ...measured, holds: holds(row, measured.microseconds) };
}

function significant(number) {
  return number >= 10 ? number.toFixed(1) : number.toPrecision(3);
}

function verdict({ holds: kept, disturbed }) {
  if (kept === null) return '-';
  return (kept ? 'yes' : 'no') + (disturbed ? '?' : '');
}

const rate = (side) => String(Math.round(side.requestsPerSecond));
const latency = (side) => `${side.p50Ms.toFixed(2)} / ${side.p99Ms.toFixed(2)}`;

function loadCells({ ours, peers, ratio, cpuRatio, budget }) {
  return {
    'ours req/s': rate(ours),
    'peer req/s': rate(peers),
    ratio: significant(ratio),
    'by CPU': cpuRatio === null ? '-' : significant(cpuRatio),
    budget: budget === null ? '-' : `>= ${budget}`,
    'p50 / p99 ms': latency(ours),
    'peer p50 / p99 ms': latency(peers),
  };
}

function cpuCells({ microseconds, budget }) {
  return { 'ours req/s': `${microseconds.toFixed(2)} us`, budget: `<= ${budget} us` };
}

function cells(outcome) {
  const measured = outcome.kind === 'cpu' ? cpuCells(outcome) : loadCells(outcome);
  const { id, what, peer } = outcome;
  return { row: id, what, peer, holds: verdict(outcome), ...measured };
}

const columns = [
  ...['row', 'what', 'peer', 'ours req/s', 'peer req/s', 'ratio', 'by CPU', 'budget', 'holds'],
  ...['p50 / p99 ms', 'peer p50 / p99 ms'],
];

/** The outcomes as a table of plain text, with a line below it when the machine wasn't quiet. */
export function table(outcomes) {
  const disturbed = outcomes.filter((outcome) => outcome.disturbed).map((outcome) => outcome.id);
  const warning = `\n${disturbed.join(', ')}: a server got less than ${undisturbedCpuShare * 100} % of its core, so the machine was not quiet: trust "by CPU" more`;
  return disturbed.length === 0 ? aligned(outcomes) : aligned(outcomes) + warning;
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
