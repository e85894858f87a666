import { pbkdf2 } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { constants, getPriority, setPriority } from 'node:os';
import { promisify } from 'node:util';

const tasks = '/proc/self/task';
/** By so much they give way to the process, of the 19 that there are. */
const niceness = 10;
const sizeDefault = 4;
const sizeMax = 1_024;
/** Some milliseconds each. */
const probesMin = 8;
const probeRounds = 5_000;
const turnsMax = 10;
/**
 * Factor by which the pool's threads must have used more CPU time than any other thread, and the busiest of them than
 * the idlest.
 */
const aheadMin = 4;
const apartMax = 3;

/** Returns the number of threads, as libuv reads its variable. */
function poolSize(given: string | undefined): number {
  if (given === undefined) return sizeDefault;
  return Math.min(Math.max(Number.parseInt(given, 10) || 1, 1), sizeMax);
}

/** For how long each thread has had a core, in nanoseconds, by its id. */
function coreTimes(): Map<string, number> {
  const times = readdirSync(tasks).map((id): [string, number] => {
    const [time] = readFileSync(`${tasks}/${id}/schedstat`, 'latin1').split(' ');
    return [id, Number(time)];
  });
  return new Map(times);
}

/** Returns the CPU time of each thread but the main one since then, the busiest first. */
function busiest(before: ReadonlyMap<string, number>): { readonly id: number; readonly time: number }[] {
  return [...coreTimes()]
    .map(([id, time]) => ({ id: Number(id), time: time - (before.get(id) ?? 0) }))
    .filter(({ id }) => id !== process.pid)
    .sort((one, other) => other.time - one.time);
}

/**
 * Finds the threads of the pool by giving them work, since they have no names. On a busy machine one may get none of it
 * at first, and other threads have work of their own; so they get more until they can be distinguished.
 */
async function poolThreads(size: number): Promise<number[]> {
  const before = coreTimes();
  const probes = Math.max(probesMin, size);
  for (let turn = 1; turn <= turnsMax; turn += 1) {
    await Promise.all(Array.from({ length: probes }, () => promisify(pbkdf2)('', '', probeRounds, 32, 'sha512')));
    const threads = busiest(before);
    const timeAt = (place: number) => threads[place]?.time ?? 0;
    const isAhead = timeAt(size - 1) > aheadMin * timeAt(size);
    if (isAhead && timeAt(size - 1) * apartMax > timeAt(0)) return threads.slice(0, size).map(({ id }) => id);
  }
  return [];
}

/**
 * Lowers the priority of the threads that hash passwords and convert pictures below the one that answers requests: with
 * fewer cores than work, uploads and sign-ins slow token checks down a third as much. Does nothing where the system has
 * no priority for each thread, as Linux has.
 * @param size value of UV_THREADPOOL_SIZE, if set
 * @returns the threads with lowered priority, by the system's numbers
 */
export async function lowerPoolPriority(size: string | undefined): Promise<readonly number[]> {
  if (process.platform !== 'linux') return [];
  try {
    const threads = await poolThreads(poolSize(size));
    const priority = Math.min(getPriority() + niceness, constants.priority.PRIORITY_LOW);
    for (const id of threads) setPriority(id, priority);
    return threads;
  } catch {
    // No such files, or no permission: everything runs with normal priority.
    return [];
  }
}
