import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { startLatchkey, startServer } from './latchkey.ts';
import { fetchBody, runLoad } from './load.ts';
import { end } from './pinned.ts';
import { seededStore } from './seeded-store.ts';
import { median } from '../harness/statistics.ts';

const starts = 5;
const idleMs = 5_000;
const sampleEveryMs = 500;

function megabytesOf(pid) {
  const [, kilobytes] = /^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(kilobytes) / 1_024;
}

/** Milliseconds from the start of the process until it says that it is ready, several times. */
async function timeStarts(dataDirOf) {
  const times = [];
  let idleMb = null;
  for (let count = 0; count < starts; count++) {
    const dataDir = await dataDirOf();
    const startedAt = performance.now();
    const { child, pid } = await startServer(dataDir === null ? {} : { dataDir });
    times.push(performance.now() - startedAt);
    if (idleMb === null) {
      await sleep(idleMs);
      idleMb = megabytesOf(pid);
    }
    await end(child);
  }
  return { times, idleMb };
}

/** What of the memory is there to stay: the lowest tenth of what was seen. */
const floorOf = (samples) => {
  const sorted = [...samples].sort((one, other) => one - other);
  return median(sorted.slice(0, Math.max(1, Math.ceil(sorted.length / 10))));
};

/** The memory of a server under load, in the third and the last quarter of the time. */
async function memoryUnderLoad({ minutes, tell }) {
  const started = await startLatchkey();
  const server = { ...started, body: await fetchBody(started) };
  const samples = [];
  const timer = setInterval(() => samples.push(megabytesOf(server.pid)), sampleEveryMs);
  tell(`P13: ${minutes} minutes of load`);
  await runLoad(server, { seconds: minutes * 60 });
  clearInterval(timer);
  const quarter = Math.floor(samples.length / 4);
  const quarters = [0, 1, 2, 3].map((place) => floorOf(samples.slice(place * quarter, (place + 1) * quarter)));
  tell(`P13: memory by quarters of the time: ${quarters.map(Math.round).join(', ')} MB`);
  return { quarters, growthMb: quarters[3] - quarters[2] };
}

/**
 * P13: start to ready with new data and with existing data (100,000 users), the idle memory of the latter after five
 * seconds, and how much memory grows over the second half of a load. Only what the wanted `parts` need is measured.
 */
export async function measureProcess({ parts, minutes, tell }) {
  const measured = {};
  if (parts.includes('fresh')) measured.fresh = await timeStarts(async () => null);
  if (parts.some((part) => ['existing', 'idle'].includes(part))) {
    const dataDir = await seededStore({ users: 100_000, tokens: 1_000 }, tell);
    measured.existing = await timeStarts(async () => dataDir);
    measured.idle = { megabytes: measured.existing.idleMb };
  }
  if (parts.includes('growth')) measured.growth = { minutes, ...(await memoryUnderLoad({ minutes, tell })) };
  return measured;
}
