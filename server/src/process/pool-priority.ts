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
/** So many times as long as any other thread those of the pool have had a core, and the busiest of them as the idlest. */
const aheadMin = 4;
const apartMax = 3;

/** How many threads there are, as libuv reads the variable that says so. */
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

/** For how long each thread but the one that answers has had a core since then, the busiest first. */
function busiest(before: ReadonlyMap<string, number>): { readonly id: number; readonly time: number }[] {
  return [...coreTimes()]
    .map(([id, time]) => ({ id: Number(id), time: time - (before.get(id) ?? 0) }))
    .filter(({ id }) => id !== process.pid)
    .sort((one, other) => other.time - one.time);
}

/**
 * The threads that do the work of others: told by giving them some, since they bear no names. Where the machine is busy,
 * one may get none of it at first, and others have work of their own; so they get more until they are told apart.
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
 * Makes the threads that hash passwords and convert pictures give way to the one that answers requests: where there are
 * fewer cores than work, token checks feel uploads and sign-ins a third as much. Does nothing where the system has no
 * priority for each thread, as Linux has.
 * @param size what UV_THREADPOOL_SIZE says, if anything
 * @returns the threads that give way now, by the system's numbers
 */
export async function lowerPoolPriority(size: string | undefined): Promise<readonly number[]> {
  if (process.platform !== 'linux') return [];
  try {
    const threads = await poolThreads(poolSize(size));
    const priority = Math.min(getPriority() + niceness, constants.priority.PRIORITY_LOW);
    for (const id of threads) setPriority(id, priority);
    return threads;
  } catch {
    // No such files, or a system that refuses: everything is as fast as it was.
    return [];
  }
}
