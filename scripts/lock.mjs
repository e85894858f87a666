import { closeSync, mkdirSync, openSync, rmSync, statSync, utimesSync } from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { codeOf, StepError, say } from './steps.mjs';

const beatMs = 1_000;
const pollMs = 250;
/** A lock whose file was not touched during this many polls belongs to a process that died. */
const staleLooks = 40;
const waitMsMax = 10 * 60_000;

/**
 * Runs `work` while no other process has the lock file. The owner touches the file every second. A waiter counts its
 * polls without a change, instead of comparing clocks or process ids: that stays right in containers that share the
 * directory and after the machine slept.
 */
export async function withLock(/** @type {string} */ path, /** @type {() => Promise<void>} */ work) {
  await acquire(path);
  const beat = setInterval(() => touch(path), beatMs);
  const release = () => rmSync(path, { force: true });
  process.on('exit', release);
  try {
    return await work();
  } finally {
    clearInterval(beat);
    process.off('exit', release);
    release();
  }
}

async function acquire(/** @type {string} */ path) {
  /** @type {{ mark: string | undefined, looks: number }} */
  let seen = { mark: undefined, looks: 0 };
  for (let waitedMs = 0; !tryCreate(path); waitedMs += pollMs) {
    if (waitedMs === 0) say('Another process is installing or building here; waiting for it…\n');
    if (waitedMs > waitMsMax)
      throw new StepError(`Gave up waiting for another process; if there is none, delete ${path}`);
    const mark = versionOf(path);
    seen = mark === seen.mark ? { mark, looks: seen.looks + 1 } : { mark, looks: 0 };
    if (seen.looks >= staleLooks) rmSync(path, { force: true });
    await sleep(pollMs);
  }
}

function tryCreate(/** @type {string} */ path) {
  try {
    mkdirSync(dirname(path), { recursive: true });
    closeSync(openSync(path, 'wx'));
    return true;
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false;
    throw new StepError(
      `Cannot write to ${dirname(path)} (${codeOf(error)}): run this once as the owner of the checkout`,
    );
  }
}

/** Returns a value that changes with every touch and with every new lock file; undefined when there is none. */
function versionOf(/** @type {string} */ path) {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat && `${stat.ino} ${stat.mtimeMs}`;
}

function touch(/** @type {string} */ path) {
  try {
    const now = new Date();
    utimesSync(path, now, now);
  } catch (error) {
    // The file was deleted by hand; the present work continues all the same.
    if (codeOf(error) !== 'ENOENT') throw error;
  }
}
