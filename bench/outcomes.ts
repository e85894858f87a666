import { median, percentile } from '../harness/statistics.ts';
import { holds } from './budgets.ts';
import { milliseconds, percent, rate, significant } from './formats.ts';
import type { Invited } from './p11-invite.ts';
import type { Relayed } from './p12-relay.ts';
import type { Statements } from './p14-statements.ts';
import type { LoadResult, Outcome, Row, Seen, Sides, Turn } from './rows.ts';
import type { Timing } from './t9-timing.ts';

/** Below this share of its core a loaded server was held up by something else: the generator or other programs. */
export const undisturbedCpuShare = 0.85;
/** An event loop that waits longer for a core, as a share of the time, is held up by others when there is no work. */
export const undisturbedWaitShare = 0.03;
/** So is a generator that is later than this with one request of a hundred. */
export const undisturbedLateMs = 2.5;

/** The outcome of a row that was measured. */
export function outcomeOf(row: Row, seen: Seen): Outcome {
  return { row, seen, consume: holds(row, seen.value) };
}

/** The outcome of a row that could not be measured: it neither holds nor doesn't. */
export function unmeasured(row: Row, reason: string): Outcome {
  return { row, seen: null, consume: null, unmeasured: reason };
}

/** A value in the unit of its row. */
export const inUnit = ({ unit = '' }: Row, value: number, format = significant): string => `${format(value)} ${unit}`;

function summary(results: readonly LoadResult[]) {
  const of = (field: 'requestsPerSecond' | 'p50Ms' | 'p99Ms') => median(results.map((result) => result[field]));
  const shares = results.map(({ serverCpuShare }) => serverCpuShare);
  const serverCpuShare = shares.includes(null) ? null : median(shares.map(Number));
  return { requestsPerSecond: of('requestsPerSecond'), p50Ms: of('p50Ms'), p99Ms: of('p99Ms'), serverCpuShare };
}

type Summary = ReturnType<typeof summary>;

const latency = ({ p50Ms, p99Ms }: Summary) => `${p50Ms.toFixed(2)} / ${p99Ms.toFixed(2)}`;

/** How many times the processor time of a request of the other side one of this side takes; null where it is not known. */
function cpuRatioOf(rounds: readonly Sides[]): number | null {
  const costs = rounds.map(({ subject, peer }) => [peer.serverCpuMicroseconds, subject.serverCpuMicroseconds] as const);
  return costs.flat().includes(null) ? null : median(costs.map(([peer, subject]) => Number(peer) / Number(subject)));
}

interface Compared {
  readonly ratios: readonly number[];
  readonly cpuRatio: number | null;
}

function compared(row: Row, rounds: readonly Sides[], { ratios, cpuRatio }: Compared): Outcome {
  const [ours, peers] = [summary(rounds.map(({ subject }) => subject)), summary(rounds.map(({ peer }) => peer))];
  const ratio = median(ratios);
  return outcomeOf(row, {
    value: ratio,
    ours: rate(ours),
    peerDoes: rate(peers),
    ratio: significant(ratio),
    byCpu: cpuRatio === null ? '-' : significant(cpuRatio),
    latencies: latency(ours),
    peerLatencies: latency(peers),
    isDisturbed: [ours, peers].some(({ serverCpuShare }) => (serverCpuShare ?? 1) < undisturbedCpuShare),
    measured: { ours, peers, ratios, ratio, cpuRatio, rounds },
  });
}

const throughput = ({ subject, peer }: Sides) => subject.requestsPerSecond / peer.requestsPerSecond;

/**
 * The outcome of a row of load: the median of the rounds' ratios of the throughput, which the budget is about. The ratio by
 * processor time and this one part on a machine that is not quiet.
 */
export function loadOutcome(row: Row, rounds: readonly Sides[]): Outcome {
  return compared(row, rounds, { ratios: rounds.map(throughput), cpuRatio: cpuRatioOf(rounds) });
}

/** The outcome of a row of calls: how many requests of the other kind take as long as one call. */
export function callsOutcome(row: Row, measured: Readonly<Record<string, readonly Sides[]>>): Outcome {
  const rounds = measured[row.part ?? ''] ?? [];
  const inverse = cpuRatioOf(rounds);
  const ratios = rounds.map((sides) => 1 / throughput(sides));
  return compared(row, rounds, { ratios, cpuRatio: inverse === null ? null : 1 / inverse });
}

/** The outcome of P5. */
export function cpuOutcome(row: Row, measured: { readonly microseconds: number }): Outcome {
  const { microseconds } = measured;
  return outcomeOf(row, { value: microseconds, ours: `${microseconds.toFixed(2)} us`, measured });
}

/** The sum of what the turns' work was answered, by status, and the median of the median times. */
function workOf(turns: readonly Turn[]) {
  const responses: Record<string, number> = {};
  for (const { loaded } of turns) {
    for (const [response, count] of Object.entries(loaded.work.answers))
      responses[response] = (responses[response] ?? 0) + count;
  }
  return { answers: responses, medianMs: median(turns.map(({ loaded }) => loaded.work.medianMs ?? Number.NaN)) };
}

/** The outcome of P7 and P8: the median of the rounds' ratios of the p99 during the work to the p99 without. */
export function turnsOutcome(row: Row, turns: readonly Turn[]): Outcome {
  const ratios = turns.map(({ idle, loaded }) => loaded.p99Ms / idle.p99Ms);
  const ratio = median(ratios);
  const waiting = (side: 'idle' | 'loaded') => median(turns.map((turn) => turn[side].serverWaitShare ?? Number.NaN));
  const lateMs = median(turns.map(({ idle }) => idle.lateP99Ms ?? 0));
  const [ours, peers] = [summary(turns.map(({ loaded }) => loaded)), summary(turns.map(({ idle }) => idle))];
  const work = workOf(turns);
  const counts = Object.entries(work.answers).map(([status, count]) => `${count} answered ${status}`);
  const told = ratios.map((one) => one.toFixed(2)).join(', ');
  return outcomeOf(row, {
    value: ratio,
    ours: `${ours.p99Ms.toFixed(2)} ms`,
    peerDoes: `${peers.p99Ms.toFixed(2)} ms`,
    ratio: significant(ratio),
    latencies: latency(ours),
    peerLatencies: latency(peers),
    isDisturbed: lateMs > undisturbedLateMs || waiting('idle') > undisturbedWaitShare,
    lines: [
      `ratios ${told}; work ${counts.join(', ')}, in ${milliseconds(work.medianMs)} (median)`,
      `the event loop was ready and waited for a core ${percent(waiting('loaded'))} of the time, ${percent(waiting('idle'))} without the work`,
    ],
    measured: { ours, peers, ratios, ratio, work, turns },
  });
}

/** The outcome of P11: the budget is about the slowest invitation. */
export function inviteOutcome(row: Row, measured: Invited): Outcome {
  const { seconds, longestMs, waitShares, mails } = measured;
  const value = Math.max(...seconds);
  const times = seconds.map((one) => `${one.toFixed(2)} s`).join(', ');
  return outcomeOf(row, {
    value,
    ours: inUnit(row, value),
    isDisturbed: Math.max(...waitShares) > undisturbedWaitShare,
    lines: [
      `took ${times}; at most ${mails.openMost} connections to the mail server at once`,
      `the longest that anyone else waited meanwhile: ${longestMs.map(milliseconds).join(', ')}`,
      `the service or the mail server was ready and waited for a core ${waitShares.map(percent).join(', ')} of the time`,
    ],
    measured,
  });
}

/** The outcome of one part of P12: the rate of the backlog, or the lag that one event of a hundred exceeds. */
export function relayOutcome(row: Row, measured: Relayed): Outcome {
  const { lagMs, perSecond, events, changesPerSecond, waitShare } = measured;
  const value = row.part === 'rate' ? perSecond : percentile(lagMs, 0.99);
  const lag = `lag ${milliseconds(percentile(lagMs, 0.5))} (median), ${milliseconds(Math.max(...lagMs))} at most`;
  const waited = `the service was ready and waited for a core ${percent(waitShare)} of the time`;
  const ofLag = `${lag}, at ${changesPerSecond.toFixed(0)} changes a second; ${waited}`;
  return outcomeOf(row, {
    value,
    ours: inUnit(row, value, (number) => String(Math.round(number))),
    isDisturbed: waitShare > undisturbedWaitShare,
    lines: [row.part === 'rate' ? `a backlog of ${events} events` : ofLag],
    measured: row.part === 'rate' ? { perSecond, events } : { lagMs, changesPerSecond, waitShare },
  });
}

/** The outcome of P14: by how many statements the route grows that grows most. */
export function statementsOutcome(row: Row, { routes }: Statements): Outcome {
  const value = Math.max(...routes.map(({ few, many }) => many.statements.length - few.statements.length));
  const lines = routes.map(({ route, few, many }) => {
    const [first, second] = [few, many].map(({ statements, rows }) => `${statements.length} for ${rows} rows`);
    return `  ${route}  statements: ${first}, ${second}`;
  });
  return outcomeOf(row, { value, ours: inUnit(row, value, String), lines, measured: { routes } });
}

/** The outcome of one part of T9: by how many percent the medians of known and unknown addresses differ. */
export function timingOutcome(row: Row, all: Readonly<Record<string, Timing>>): Outcome {
  const measured = all[row.part ?? ''];
  if (!measured) throw new Error(`nothing was measured of ${row.part}`);
  const { knownMs, unknownMs, after } = measured;
  const value = (Math.abs(knownMs - unknownMs) / unknownMs) * 100;
  const both = (one: { readonly knownMs: number; readonly unknownMs: number }) =>
    `${one.knownMs.toFixed(3)} ms known, ${one.unknownMs.toFixed(3)} ms unknown`;
  return outcomeOf(row, {
    value,
    ours: `${knownMs.toFixed(2)} ms`,
    peerDoes: `${unknownMs.toFixed(2)} ms`,
    ratio: `${value.toFixed(1)} %`,
    lines: [
      `${row.what}, medians of ${row.tries} each: ${both(measured)}; another request right after: ${both(after)}`,
    ],
    measured,
  });
}
