import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startLatchkey } from './latchkey.mjs';
import { fetchBody, runLoad } from './load.mjs';
import { makePictures } from './pictures.mjs';
import { collect, startNode, temporaryFolder } from './processes.mjs';
import { median } from './statistics.mjs';

const uploader = fileURLToPath(new URL('./picture-uploader.mjs', import.meta.url));
const uploadsPerSecond = 5;
/**
 * A fixed rate, a few percent of what one core answers: under saturation the requests wait for each other, idle or not, and
 * that queue would hide what uploads add. It also keeps sending while the server stands still.
 */
const checksPerSecond = 1000;
/** Uploads under way for this long are what the measured seconds find. */
const uploadsAheadMs = 1000;
/** After uploads, before the idle turn. */
const restMs = 500;
/** Turns are shorter than those of the load rows: thousands of latencies are enough, and the whole run has its limits too. */
const turnShare = 0.3;
/** Of a rate that was ordered, the least that has to be reached for the row to mean anything. */
const rateShareMin = 0.9;

function storePictures(pictures) {
  const folder = temporaryFolder();
  return pictures.map(({ name, type, bytes }) => {
    const file = join(folder, name);
    writeFileSync(file, bytes);
    return { name, type, file };
  });
}

function startUploads({ port, headers }, pictures) {
  const orders = { port, path: '/api/v1/users/dp', headers, perSecond: uploadsPerSecond, pictures };
  const child = startNode([uploader], { core: 'generator', env: { UPLOADS: JSON.stringify(orders) } });
  const [output, complaint] = [collect(child.stdout), collect(child.stderr)];
  return async () => {
    child.kill('SIGTERM');
    const { code } = await child.ended;
    if (code !== 0) throw new Error(`the uploads broke: ${complaint().trim()}`);
    return JSON.parse(output());
  };
}

function requireUploads({ answers, perSecond }) {
  const unexpected = Object.keys(answers).find((answer) => !['201', '503'].includes(answer));
  if (unexpected !== undefined) throw new Error(`an upload was answered ${unexpected}`);
  if (!answers['201']) throw new Error('not one upload was answered 201');
  if (perSecond < uploadsPerSecond * rateShareMin) {
    throw new Error(`only ${perSecond.toFixed(1)} uploads a second could be sent, not ${uploadsPerSecond}`);
  }
}

async function checks(server, seconds) {
  const result = await runLoad(server, { seconds, perSecond: checksPerSecond });
  return { ...result, seconds };
}

async function loadedTurn(server, { pictures, seconds }) {
  const endUploads = startUploads(server, pictures);
  await sleep(uploadsAheadMs);
  const result = await checks(server, seconds);
  const uploads = await endUploads();
  requireUploads(uploads);
  return { ...result, uploads };
}

const percent = (share) => (share === null ? '?' : `${Math.round(share * 100)} %`);

const turnText = ({ p50Ms, p99Ms, lateP99Ms, serverCpuShare, serverWaitShare }) =>
  [
    `p50 ${p50Ms.toFixed(2)} ms, p99 ${p99Ms.toFixed(2)} ms`,
    `(server ${percent(serverCpuShare)} of a core, its event loop waiting for one ${percent(serverWaitShare)} of the time;`,
    `generator late by ${lateP99Ms.toFixed(1)} ms at p99)`,
  ].join(' ');

const uploadsText = ({ answers, medianMs }) =>
  `uploads: ${answers['201'] ?? 0} × 201, ${answers['503'] ?? 0} × 503, median ${Math.round(medianMs)} ms`;

/**
 * P8: the latency of token checks idle and during uploads, in turns on one server, which is not kept to one core: its
 * picture threads are meant to run beside the event loop, and on one core the kernel's time slices would be measured.
 * Returns one `{ idle, loaded }` a round.
 */
export async function measureUploads({ seconds, rounds, tell }) {
  tell('P8: making pictures');
  const pictures = await makePictures();
  tell(`P8: ${pictures.map(({ name, bytes }) => `${name} ${(bytes.length / 1e6).toFixed(2)} MB`).join(', ')}`);
  const started = await startLatchkey({ scopes: ['user:read', 'user:write'], core: 'others' });
  const server = { ...started, body: await fetchBody(started) };
  const turn = { pictures: storePictures(pictures), seconds: seconds * turnShare };
  await runLoad(server, { seconds: 3 });
  const results = [];
  for (let round = 1; round <= rounds; round++) {
    await sleep(restMs);
    const idle = await checks(server, turn.seconds);
    const loaded = await loadedTurn(server, turn);
    tell(`P8: round ${round} of ${rounds}  idle    ${turnText(idle)}`);
    tell(`P8: round ${round} of ${rounds}  uploads ${turnText(loaded)}; ${uploadsText(loaded.uploads)}`);
    results.push({ idle, loaded });
  }
  return results;
}

/** The sum of what the rounds' uploads were answered, by status, and the median of their median times. */
export function uploadsOf(rounds) {
  const answers = {};
  for (const { loaded } of rounds) {
    for (const [answer, count] of Object.entries(loaded.uploads.answers)) {
      answers[answer] = (answers[answer] ?? 0) + count;
    }
  }
  return { answers, medianMs: median(rounds.map(({ loaded }) => loaded.uploads.medianMs)) };
}
