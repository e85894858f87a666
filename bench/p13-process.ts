import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { median } from '../harness/statistics.ts';
import { listed } from './formats.ts';
import { startLatchkey, startServer } from './latchkey.ts';
import { fetchBody, runLoad } from './load.ts';
import type { Options } from './rows.ts';
import { seededStore } from './seeded-store.ts';

interface Starts {
  readonly times: readonly number[];
  /** Memory of the first, five seconds later. */
  readonly idleMb: number;
}

interface Growth {
  readonly minutes: number;
  /** Megabytes in each quarter of the time. */
  readonly quarters: readonly number[];
  readonly growthMb: number;
}

/** What P13 measured, of the parts that were wanted. */
export interface ProcessFigures {
  readonly fresh: Starts | null;
  readonly existing: Starts | null;
  readonly growth: Growth | null;
}

const starts = 5;
const idleMs = 5_000;
const sampleEveryMs = 500;

function megabytesOf(pid: number): number {
  const [, kilobytes] = /^VmRSS:\s*(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? [];
  return Number(kilobytes) / 1_024;
}

/** Milliseconds from the start of the process until it says that it is ready, several times. */
async function timeStarts(dataDir?: string): Promise<Starts> {
  const times: number[] = [];
  let idleMb = Number.NaN;
  for (let count = 0; count < starts; count++) {
    const startedAt = performance.now();
    const { program, pid } = await startServer(dataDir === undefined ? {} : { dataDir });
    times.push(performance.now() - startedAt);
    if (count === 0) {
      await sleep(idleMs);
      idleMb = megabytesOf(pid);
    }
    await program.end();
  }
  return { times, idleMb };
}

/** What of the memory is there to stay: the lowest tenth of what was seen. */
const floorOf = (samples: readonly number[]) => {
  const sorted = [...samples].sort((one, other) => one - other);
  return median(sorted.slice(0, Math.max(1, Math.ceil(sorted.length / 10))));
};

/** The memory of a server under load, in the third and the last quarter of the time. */
async function memoryUnderLoad({ minutes, tell }: Options): Promise<Growth> {
  const started = await startLatchkey();
  const server = { ...started, body: await fetchBody(started) };
  const samples: number[] = [];
  const timer = setInterval(() => samples.push(megabytesOf(server.pid)), sampleEveryMs);
  tell(`P13: ${minutes} minutes of load`);
  await runLoad(server, { seconds: minutes * 60 });
  clearInterval(timer);
  const quarter = Math.floor(samples.length / 4);
  const quarters = [0, 1, 2, 3].map((place) => floorOf(samples.slice(place * quarter, (place + 1) * quarter)));
  tell(`P13: memory by quarters of the time: ${listed(quarters)} MB`);
  const [, , third = Number.NaN, fourth = Number.NaN] = quarters;
  return { minutes, quarters, growthMb: fourth - third };
}

/**
 * P13: start to ready with new data and with existing data (100,000 users), the idle memory of the latter after five
 * seconds, and how much memory grows over the second half of a load. Only what the wanted `parts` need is measured.
 */
export async function measureProcess(
  parts: readonly (string | undefined)[],
  options: Options,
): Promise<ProcessFigures> {
  const fresh = parts.includes('fresh') ? await timeStarts() : null;
  const isOfExisting = parts.includes('existing') || parts.includes('idle');
  const dataDir = isOfExisting ? await seededStore({ users: 100_000, tokens: 1_000 }, options.tell) : undefined;
  const existing = dataDir === undefined ? null : await timeStarts(dataDir);
  const growth = parts.includes('growth') ? await memoryUnderLoad(options) : null;
  return { fresh, existing, growth };
}
