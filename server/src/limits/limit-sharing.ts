import { createHash } from 'node:crypto';
import pLimit from 'p-limit';
import { minute } from '../base/clock.ts';
import type { Database } from '../db/database.ts';
import { StoreBusyError } from '../db/failures.ts';
import { retryOnConflict } from '../db/retry-on-conflict.ts';
import { type ActWindow, BoundedMap, type LimitCounts, type LimitKey, withAct } from './limit-counts.ts';
import {
  changeCounts,
  deleteCountsBefore,
  deleteCountsBeginningWith,
  type StoredCount,
  upsertAct,
} from './limit-store.ts';
import type { Failures } from './slow-down.ts';

/** A failure counts for an hour, and no window is as long. */
const keptMs = 60 * minute;
const triesMax = 4;
/** Number of frequent acts that a node counts alone before it shares them with the others. */
const steps: Readonly<Record<string, number>> = { write: 10, administratorWrite: 50 };
/**
 * A client with many sign-in attempts waits for the same row again and again: the store's connections are needed by
 * others, too.
 */
const changesAtOnce = 2;
const changesWaitingMax = 128;

/** Text that was entered as an address is private, and may be of any length. */
function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

/** Returns the prefix of the names of everything counted for an account. */
function prefixOf(account: string): string {
  return `${hashOf(`account ${account}`)}.`;
}

function nameOf({ what, key, account }: LimitKey): string {
  return account === undefined ? hashOf(`${what} ${key}`) : prefixOf(account) + hashOf(`${what} ${key}`);
}

function toFailures(row: StoredCount | undefined): Failures | undefined {
  return row && { count: row.count, lastMs: row.last_at, earlierMs: row.earlier_at, blockedUntilMs: row.until_at };
}

function toCount(key: string, { count, lastMs, earlierMs, blockedUntilMs }: Failures): StoredCount {
  return { key, count, last_at: lastMs, earlier_at: earlierMs, until_at: blockedUntilMs };
}

/**
 * Counts for all nodes that share a store. A caller who is over an allowance is remembered here until the window ends, so that
 * who goes on trying writes nothing; but for what counts for an account, which any node may have forgotten. Rule: NODE-4.
 * @param allowanceOf how many acts of a kind are free in a window
 */
export function countsInStore(db: Database, allowanceOf: (what: string) => number): LimitCounts {
  const over = new BoundedMap<ActWindow>();
  const own = new BoundedMap<ActWindow>();
  const changes = pLimit(changesAtOnce);
  return {
    async countAct(of, time) {
      const { nowMs, windowMs } = time;
      const key = nameOf(of);
      const amount = steps[of.what] ?? 1;
      const known = over.get(key);
      if (known && nowMs < known.endsMs && known.endsMs - nowMs <= windowMs) return known;
      if (amount > 1) {
        const mine = withAct(own.get(key), time);
        own.set(key, mine);
        if (mine.count % amount !== 0) return mine;
      }
      const { count, until_at: endsMs } = await upsertAct(db, { key, nowMs, windowMs, amount });
      if (of.account === undefined && count > allowanceOf(of.what)) over.set(key, { count, endsMs });
      return { count, endsMs };
    },
    async changeFailures(keys, change) {
      if (changes.pendingCount >= changesWaitingMax) throw new StoreBusyError('too many sign-ins wait to be counted');
      const names = keys.map(nameOf);
      const changeOnce = () =>
        changeCounts(db, names, (known) => {
          const changed = change(names.map((name) => toFailures(known.get(name))));
          return names.flatMap((name, place) => {
            const failures = changed[place];
            return failures ? [toCount(name, failures)] : [];
          });
        });
      await changes(() => retryOnConflict(triesMax, changeOnce));
    },
    forgetAccount: (account) => deleteCountsBeginningWith(db, prefixOf(account)),
  };
}

/** Removes counts that no longer block anyone and returns their number. */
export async function pruneLimits(db: Database, nowMs: number): Promise<number> {
  return db.isShared ? deleteCountsBefore(db.read, nowMs - keptMs) : 0;
}
