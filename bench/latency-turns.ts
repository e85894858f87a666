import { setTimeout as sleep } from 'node:timers/promises';
import { collect } from '../harness/processes.ts';
import { percent } from './formats.ts';
import { fetchBody, runLoad } from './load.ts';
import { startNode } from './pinned.ts';
import type { LoadResult, Measured, Rounds, Target, Turn, WorkDone } from './rows.ts';

/** What is done at the same time as token checks. */
interface Work {
  readonly name: string;
  /** The answer of success. */
  readonly good: string;
  /** The process that does it, and what it reads from the variable WORK. */
  readonly script: string;
  readonly orders: { readonly perSecond: number };
}

/**
 * A fixed rate, a few percent of what one core answers: under saturation the requests wait for each other, idle or not, and
 * that queue would hide what the work adds. It also keeps sending while the server stands still.
 */
const checksPerSecond = 1000;
/** Work under way for this long is what the measured seconds find. */
const workAheadMs = 1000;
/** After work, before the idle turn. */
const restMs = 500;
/** Turns are shorter than those of the load rows: thousands of latencies are enough, and the whole run has its limits too. */
const turnShare = 0.3;
/** Of a rate that was ordered, the least that has to be reached for the row to mean anything. */
const rateShareMin = 0.9;

function startWork({ script, orders }: Work): () => Promise<WorkDone> {
  const program = startNode([script], { core: 'generator', env: { WORK: JSON.stringify(orders) } });
  const [output, complaint] = [collect(program.stdout), collect(program.stderr)];
  return async () => {
    const { code } = await program.end();
    if (code !== 0) throw new Error(`${script} broke: ${complaint().trim()}`);
    return JSON.parse(output());
  };
}

function requireWork({ name, good, orders }: Work, { answers: responses, perSecond }: WorkDone): void {
  const unexpected = Object.keys(responses).find((response) => ![good, '503'].includes(response));
  if (unexpected !== undefined) throw new Error(`one of the ${name} was answered ${unexpected}`);
  if (!responses[good]) throw new Error(`not one of the ${name} was answered ${good}`);
  if (perSecond < orders.perSecond * rateShareMin) {
    throw new Error(`only ${perSecond.toFixed(1)} ${name} a second could be sent, not ${orders.perSecond}`);
  }
}

const checks = (server: Measured, seconds: number) => runLoad(server, { seconds, perSecond: checksPerSecond });

async function loadedTurn(server: Measured, work: Work, seconds: number): Promise<Turn['loaded']> {
  const endWork = startWork(work);
  await sleep(workAheadMs);
  const result = await checks(server, seconds);
  const done = await endWork();
  requireWork(work, done);
  return { ...result, work: done };
}

const turnText = ({ p50Ms, p99Ms, lateP99Ms = 0, serverCpuShare, serverWaitShare }: LoadResult) =>
  [
    `p50 ${p50Ms.toFixed(2)} ms, p99 ${p99Ms.toFixed(2)} ms`,
    `(server ${percent(serverCpuShare)} of a core, its event loop waiting for one ${percent(serverWaitShare)} of the time;`,
    `generator late by ${lateP99Ms.toFixed(1)} ms at p99)`,
  ].join(' ');

const workText = ({ name, good }: Work, { answers: responses, medianMs }: WorkDone) =>
  `${name}: ${responses[good] ?? 0} × ${good}, ${responses['503'] ?? 0} × 503, median ${Math.round(medianMs ?? Number.NaN)} ms`;

interface Options {
  readonly id: string;
  readonly started: Target;
  readonly work: Work;
}

/**
 * The latency of token checks, idle and while `work` is done, in turns on one server, which is not kept to one core: its
 * threads are meant to run beside the event loop, and on one core the kernel's time slices would be measured. Returns one turn a round.
 */
export async function measureTurns({ id, started, work }: Options, { seconds, rounds, tell }: Rounds) {
  const server = { ...started, body: await fetchBody(started) };
  await runLoad(server, { seconds: 3 });
  const results: Turn[] = [];
  for (let round = 1; round <= rounds; round++) {
    await sleep(restMs);
    const idle = await checks(server, seconds * turnShare);
    const loaded = await loadedTurn(server, work, seconds * turnShare);
    const begin = `${id}: round ${round} of ${rounds}  `;
    tell(`${begin}${'idle'.padEnd(work.name.length)} ${turnText(idle)}`);
    tell(`${begin}${work.name} ${turnText(loaded)}; ${workText(work, loaded.work)}`);
    results.push({ idle, loaded });
  }
  return results;
}
