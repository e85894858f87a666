import { pbkdf2 } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { setPriority } from 'node:os';
import { promisify } from 'node:util';

const tasks = '/proc/self/task';
/** Of 19, which is the most that can be given way. */
const niceness = 10;
/** As many as there may be threads, some milliseconds each. */
const probes = 8;
const probeRounds = 5_000;
const busyNs = 1_000_000;

/** For how long each thread has had a core, in nanoseconds, by its id. */
function coreTimes(): Map<string, number> {
  const times = readdirSync(tasks).map((id): [string, number] => {
    const [time] = readFileSync(`${tasks}/${id}/schedstat`, 'latin1').split(' ');
    return [id, Number(time)];
  });
  return new Map(times);
}

/** The threads that do the work of others: told by giving them some, since they bear no names. */
async function poolThreads(): Promise<number[]> {
  const before = coreTimes();
  await Promise.all(Array.from({ length: probes }, () => promisify(pbkdf2)('', '', probeRounds, 32, 'sha512')));
  const isBusy = ([id, time]: [string, number]) => time - (before.get(id) ?? 0) > busyNs;
  return [...coreTimes()].filter(isBusy).map(([id]) => Number(id));
}

/**
 * Makes the threads that hash passwords and convert pictures give way to the one that answers requests: where there are
 * fewer cores than work, token checks feel uploads and sign-ins a third as much. Does nothing where the system has no
 * priority for each thread, as Linux has.
 * @returns the threads that give way now, by the system's numbers
 */
export async function lowerPoolPriority(): Promise<readonly number[]> {
  if (process.platform !== 'linux') return [];
  try {
    const others = (await poolThreads()).filter((id) => id !== process.pid);
    for (const id of others) setPriority(id, niceness);
    return others;
  } catch {
    // No such files, or a system that refuses: everything is as fast as it was.
    return [];
  }
}
