import { existsSync, readdirSync, statSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { second, toTimestamp } from '../../../server/src/base/clock.ts';
import { encryptionKeyFile } from '../../../server/src/keys/encryption.ts';
import { signingKeyFile } from '../../../server/src/keys/key-place.ts';
import { type Finding, failed, fine, shownBytes, skipped, warning } from './check.ts';

const gigabyte = 1_000_000_000;
const freeBytesMin = 0.2 * gigabyte;
const freeBytesAdvised = 2 * gigabyte;
/** Before this release there was nothing to run. */
const yearMin = 2026;
const yearMax = 2100;
const aheadMsMax = 60 * second;
const apartMsAdvised = 2 * second;
const apartMsMax = 30 * second;

/** Checks the free space of a disk. Rule: CLI-21. */
export function checkSpace({ freeBytes, place }: { readonly freeBytes: number; readonly place: string }): Finding {
  const found = `${shownBytes(freeBytes)} free at ${place}`;
  if (freeBytes < freeBytesMin) return failed(found, 'Free space at once: without it no write succeeds');
  if (freeBytes < freeBytesAdvised) return warning(found, 'Free space soon, or move DATA_DIR to a larger disk');
  return fine(found);
}

/**
 * Checks whether the server's user has more rights than needed. Rule: CLI-21.
 * @param uid of this process; `undefined` where the system has no user ids
 */
export function checkUser(uid: number | undefined): Finding {
  if (uid !== 0) return fine('This is not the superuser');
  const cure = 'Run the server, and this, as a user of its own that owns DATA_DIR; no right of root is needed';
  return warning('This runs as root: an attacker who takes over the server controls the whole machine', cure);
}

/** The nearest directory that is there: the data directory may be made only later. */
function directoryAt(path: string): string {
  const above = dirname(path);
  return existsSync(path) || above === path ? path : directoryAt(above);
}

/** Checks the free space of the data directory. */
export async function checkDisk(dataDir: string): Promise<Finding> {
  const place = directoryAt(resolve(dataDir));
  const { bavail, bsize } = await statfs(place);
  return checkSpace({ freeBytes: bavail * bsize, place });
}

/** Checks that the files of a data directory are accessible to their owner only. Rule: CLI-21. */
export function checkFiles(dataDir: string): Finding {
  if (!existsSync(dataDir)) return skipped(`DATA_DIR ${dataDir} is not there yet`);
  const secret = new RegExp(`^(${signingKeyFile}|${encryptionKeyFile}(\\.next)?)$`);
  const open = readdirSync(dataDir)
    .filter((name) => secret.test(name) || name.startsWith('latchkey.db'))
    .filter((name) => ((statSync(join(dataDir, name), { throwIfNoEntry: false })?.mode ?? 0) & 0o077) !== 0);
  const cure = `Run chmod 600 on it: ${open.map((name) => join(dataDir, name)).join(' ')}`;
  const found = `Others on this machine may read ${open.join(', ')}`;
  if (open.some((name) => secret.test(name))) return failed(`${found}; no server starts like that`, cure);
  if (open.length > 0) return warning(found, cure);
  return fine(`The files in ${dataDir} are their owner's alone`);
}

interface ClockReadings {
  readonly nowMs: number;
  /** Latest time in the store; `null`: unknown. */
  readonly latestMs: number | null;
  /** Milliseconds that a running server's clock is ahead; `null`: no server responded. */
  readonly serverAheadMs: number | null;
}

/** Checks the clock of this machine, alone and against others. Rule: CLI-21. */
export function checkClock({ nowMs, latestMs, serverAheadMs }: ClockReadings): Finding {
  const cure = 'Set the clock, best by NTP (systemd-timesyncd, chrony), before a server starts';
  const year = new Date(nowMs).getUTCFullYear();
  const now = toTimestamp(nowMs);
  if (year < yearMin || year > yearMax) return failed(`The clock of this machine shows ${now}`, cure);
  if (latestMs !== null && latestMs > nowMs + aheadMsMax) {
    return failed(
      `The clock of this machine shows ${now}, but the latest record in the store is of ${toTimestamp(latestMs)}`,
      cure,
    );
  }
  if (serverAheadMs === null) return fine(`The clock of this machine shows ${now}`);
  const apart = `The clocks of this machine and of the server are ${(Math.abs(serverAheadMs) / second).toFixed(1)} s apart`;
  if (Math.abs(serverAheadMs) > apartMsMax) return failed(apart, cure);
  if (Math.abs(serverAheadMs) > apartMsAdvised) return warning(apart, cure);
  return fine(`The clock of this machine shows ${now}, and so does that of the server`);
}
