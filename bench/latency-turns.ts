import { setTimeout as sleep } from 'node:timers/promises';
import { fetchBody, runLoad } from './load.ts';
import { collect, startNode } from './pinned.ts';
import { median } from '../harness/statistics.ts';

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

function startWork({ script, orders }) {
  const child = startNode([script], { core: 'generator', env: { WORK: JSON.stringify(orders) } });
  const [output, complaint] = [collect(child.stdout), collect(child.stderr)];
  return async () => {
    child.kill('SIGTERM');
    const { code } = await child.ended;
    if (code !== 0) throw new Error(`${script} broke: ${complaint().trim()}`);
    return JSON.parse(output());
  };
}

function requireWork({ name, good, orders }, { answers, perSecond }) {
  const unexpected = Object.keys(answers).find((answer) => ![good, '503'].includes(answer));
  if (unexpected !== undefined) throw new Error(`one of the ${name} was answered ${unexpected}`);
  if (!answers[good]) throw new Error(`not one of the ${name} was answered ${good}`);
  if (perSecond < orders.perSecond * rateShareMin) {
    throw new Error(`only ${perSecond.toFixed(1)} ${name} a second could be sent, not ${orders.perSecond}`);
  }
}

async function checks(server, seconds) {
  const result = await runLoad(server, { seconds, perSecond: checksPerSecond });
  return { ...result, seconds };
}

async function loadedTurn(server, { work, seconds }) {
  const endWork = startWork(work);
  await sleep(workAheadMs);
  const result = await checks(server, seconds);
  const done = await endWork();
  requireWork(work, done);
  return { ...result, work: done };
}

const percent = (share) => (share === null ? '?' : `${Math.round(share * 100)} %`);

const turnText = ({ p50Ms, p99Ms, lateP99Ms, serverCpuShare, serverWaitShare }) =>
  [
    `p50 ${p50Ms.toFixed(2)} ms, p99 ${p99Ms.toFixed(2)} ms`,
    `(server ${percent(serverCpuShare)} of a core, its event loop waiting for one ${percent(serverWaitShare)} of the time;`,
    `generator late by ${lateP99Ms.toFixed(1)} ms at p99)`,
  ].join(' ');

const workText = ({ name, good }, { answers, medianMs }) =>
  `${name}: ${answers[good] ?? 0} × ${good}, ${answers['503'] ?? 0} × 503, median ${Math.round(medianMs)} ms`;

/**
 * The latency of token checks, idle and while `work` is done, in turns on one server, which is not kept to one core: its
 * threads are meant to run beside the event loop, and on one core the kernel's time slices would be measured. `work` is
 * `{ name, good, script, orders }`: what it is called, the status of success, and the process that does it. Returns one
 * `{ idle, loaded }` a round.
 */
export async function measureTurns({ id, started, work }, { seconds, rounds, tell }) {
  const server = { ...started, body: await fetchBody(started) };
  const turn = { work, seconds: seconds * turnShare };
  await runLoad(server, { seconds: 3 });
  const results = [];
  for (let round = 1; round <= rounds; round++) {
    await sleep(restMs);
    const idle = await checks(server, turn.seconds);
    const loaded = await loadedTurn(server, turn);
    const begin = `${id}: round ${round} of ${rounds}  `;
    tell(`${begin}${'idle'.padEnd(work.name.length)} ${turnText(idle)}`);
    tell(`${begin}${work.name} ${turnText(loaded)}; ${workText(work, loaded.work)}`);
    results.push({ idle, loaded });
  }
  return results;
}

/** The sum of what the rounds' work was answered, by status, and the median of the median times. */
export function workOf(rounds) {
  const answers = {};
  for (const { loaded } of rounds) {
    for (const [answer, count] of Object.entries(loaded.work.answers)) {
      answers[answer] = (answers[answer] ?? 0) + count;
    }
  }
  return { answers, medianMs: median(rounds.map(({ loaded }) => loaded.work.medianMs)) };
}
