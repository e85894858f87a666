import { holds } from './budgets.ts';
import { workOf } from './latency-turns.ts';
import { median, percentile } from '../harness/statistics.ts';

/** Below this share of its core a loaded server was held up by something else: the generator or other programs. */
export const undisturbedCpuShare = 0.85;
/** An event loop that waits longer for a core, as a share of the time, is held up by others when there is no work. */
export const undisturbedWaitShare = 0.03;
/** So is a generator that is later than this with one request of a hundred. */
export const undisturbedLateMs = 2.5;

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

/** The outcome of a row of calls: how many requests without take as long as one call; `cpuRatio` as for load rows. */
export function callsOutcome(row, measured) {
  const rounds = measured[row.part];
  const ratios = rounds.map(({ subject, peer }) => peer.requestsPerSecond / subject.requestsPerSecond);
  const ratio = median(ratios);
  const [ours, peers] = [summary(rounds, 'subject'), summary(rounds, 'peer')];
  const disturbed = [ours, peers].some(({ serverCpuShare }) => (serverCpuShare ?? 1) < undisturbedCpuShare);
  const inverse = cpuRatioOf(rounds, { subject: 'subject', peer: 'peer' });
  const cpuRatio = inverse === null ? null : 1 / inverse;
  return { ...row, ours, peers, ratios, ratio, cpuRatio, disturbed, holds: holds(row, ratio) };
}

/** The outcome of P4: how many requests the large store answers for one of the small one; `cpuRatio` as for load rows. */
export function growthOutcome(row, rounds) {
  const ratios = rounds.map(({ subject, peer }) => subject.requestsPerSecond / peer.requestsPerSecond);
  const ratio = median(ratios);
  const [ours, peers] = [summary(rounds, 'subject'), summary(rounds, 'peer')];
  const disturbed = [ours, peers].some(({ serverCpuShare }) => (serverCpuShare ?? 1) < undisturbedCpuShare);
  const cpuRatio = cpuRatioOf(rounds, { subject: 'subject', peer: 'peer' });
  return { ...row, ours, peers, ratios, ratio, cpuRatio, disturbed, holds: holds(row, ratio) };
}

/** What each figure is, of what was measured for it. */
const figures = {
  P6: { late: ({ late }) => late.count },
  P10: { first: ({ first }) => first.p95Ms, thousandth: ({ thousandth }) => thousandth.p95Ms },
  P13: {
    fresh: ({ fresh }) => Math.max(...fresh.times) / 1_000,
    existing: ({ existing }) => Math.max(...existing.times) / 1_000,
    idle: ({ idle }) => idle.megabytes,
    growth: ({ growth }) => growth.growthMb,
  },
};

/** The outcome of a row that is about one figure; of several starts, the slowest counts. */
export function figureOutcome(row, measured) {
  const value = figures[row.id][row.part](measured);
  return { ...row, value, measured: measured[row.part], holds: holds(row, value) };
}

/** The outcome of a cpu row; `measured` holds at least `{ microseconds }`. */
export function cpuOutcome(row, measured) {
  return { ...row, ...measured, holds: holds(row, measured.microseconds) };
}

/** The outcome of P7 and P8: the median of the rounds' ratios of the p99 during the work to the p99 without. */
export function turnsOutcome(row, turns) {
  const ratios = turns.map(({ idle, loaded }) => loaded.p99Ms / idle.p99Ms);
  const ratio = median(ratios);
  const idle = (field) => median(turns.map((turn) => turn.idle[field] ?? 0));
  const disturbed = idle('lateP99Ms') > undisturbedLateMs || idle('serverWaitShare') > undisturbedWaitShare;
  const [ours, peers] = [summary(turns, 'loaded'), summary(turns, 'idle')];
  const work = workOf(turns);
  return { ...row, ours, peers, ratios, ratio, disturbed, work, turns, holds: holds(row, ratio) };
}

/** The outcome of one part of P9: the budget is about the most that was seen. */
export function listOutcome(row, { whole, counted }) {
  const measured = {
    firstByte: () => ({ values: whole.firstByteMs, ...whole }),
    memory: () => ({ values: whole.memoryMb, idleMb: whole.idleMb }),
    statements: () => ({
      values: [counted.wholeList.length],
      sql: counted.wholeList,
      firstSql: counted.firstWholeList,
    }),
  };
  const { values, ...details } = measured[row.part]();
  const value = Math.max(...values);
  return { ...row, value, median: median(values), values, ...details, holds: holds(row, value) };
}

/** The outcome of P11: the budget is about the slowest invitation. */
export function inviteOutcome(row, { seconds, longestMs, waitShares, mails }) {
  const value = Math.max(...seconds);
  const disturbed = Math.max(...waitShares) > undisturbedWaitShare;
  return { ...row, value, values: seconds, longestMs, waitShares, mails, disturbed, holds: holds(row, value) };
}

/** The outcome of one part of P12: the rate of the backlog, or the lag that one event of a hundred exceeds. */
export function relayOutcome(row, { lagMs, perSecond, ...more }) {
  const value = row.part === 'rate' ? perSecond : percentile(lagMs, 0.99);
  const lag = { medianMs: percentile(lagMs, 0.5), longestMs: lagMs.at(-1) };
  const disturbed = more.waitShare > undisturbedWaitShare;
  return { ...row, value, ...(row.part === 'lag' ? lag : {}), ...more, disturbed, holds: holds(row, value) };
}

/** The outcome of P14: by how many statements the route grows that grows most. */
export function statementsOutcome(row, { routes }) {
  const value = Math.max(...routes.map(({ few, many }) => many.statements.length - few.statements.length));
  return { ...row, value, routes, holds: holds(row, value) };
}

/** The outcome of one part of T9: by how many percent the medians of known and unknown addresses differ. */
export function timingOutcome(row, measured) {
  const { knownMs, unknownMs } = measured[row.part];
  const value = (Math.abs(knownMs - unknownMs) / unknownMs) * 100;
  return { ...row, value, ...measured[row.part], holds: holds(row, value) };
}

/** The outcome of a row that could not be measured: it neither holds nor doesn't. */
export function unmeasured(row, error) {
  return { ...row, unmeasured: error.message, holds: null };
}
