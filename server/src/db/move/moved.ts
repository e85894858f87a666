import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { z } from 'zod';
import { StartupError } from '../../base/errors.ts';
import { syncDirectory, writePrivately } from '../../base/private-file.ts';
import type { Database } from '../database.ts';
import { StoreMovedError } from '../failures.ts';

/**
 * Name of the mark in the data directory of an embedded store that was moved. While it exists, the store is not used.
 */
export const movedFile = 'moved.json';

const movedMark = z.object({
  /** The address of the database, without user and password. */
  to: z.string(),
  /** In RFC 3339. */
  movedAt: z.string(),
  /** The number of the move: see `claimTarget`. */
  move: z.number(),
  tables: z.array(z.object({ table: z.string(), rows: z.number(), digest: z.string() })),
  /** The last number that was taken of each counter. */
  counters: z.record(z.string(), z.number()),
  signingKeys: z.number(),
});

/** Facts about a finished move. */
export type MovedMark = z.infer<typeof movedMark>;

const fileOf = (dataDir: string) => join(dataDir, movedFile);

/** Returns whether the store of a data directory was moved away. */
export function isMoved(dataDir: string): boolean {
  return existsSync(fileOf(dataDir));
}

/**
 * Returns the facts about the move of a store; `null` where it wasn't moved. Throws StartupError for a damaged mark.
 */
export function readMoved(dataDir: string): MovedMark | null {
  if (!isMoved(dataDir)) return null;
  try {
    return movedMark.parse(JSON.parse(readFileSync(fileOf(dataDir), 'utf8')));
  } catch (error) {
    throw new StartupError(
      `The mark of a move ${fileOf(dataDir)} is damaged: latchkey move --back removes it, and the store here is used again`,
      { cause: error },
    );
  }
}

/** Takes a store out of use, for those who have it open as well. To be called inside a transaction of it. */
export function markMoved(dataDir: string, mark: MovedMark): void {
  writePrivately(fileOf(dataDir), `${JSON.stringify(mark, null, 2)}\n`);
}

/** Has a store that was moved be used again. */
export function unmarkMoved(dataDir: string): void {
  rmSync(fileOf(dataDir));
  syncDirectory(fileOf(dataDir));
}

/** Rejects a store that was moved away. Throws StartupError. Rule: STORE-16. */
export function requireNotMoved(dataDir: string): void {
  const mark = readMoved(dataDir);
  if (mark === null) return;
  throw new StartupError(
    `The store in DATA_DIR ${dataDir} was moved to ${mark.to} on ${mark.movedAt}: set DATABASE_URL, or go back to it with latchkey move --back`,
  );
}

/**
 * Rejects writes once the store was moved while it was open; reads go on. The move holds the lock that every
 * transaction takes first, and writes the mark before it releases the lock. Rule: STORE-16.
 */
export function untilMoved(db: Database, dataDir: string): Database {
  const refuse = () => {
    if (isMoved(dataDir)) throw new StoreMovedError('the store was moved away');
  };
  const unlessMoved = (run: Database['transaction']): Database['transaction'] => {
    return (work) =>
      run(async (tx) => {
        refuse();
        return work(tx);
      });
  };
  return {
    ...db,
    transaction: unlessMoved(db.transaction),
    sideTransaction: unlessMoved(db.sideTransaction),
    check: async () => {
      refuse();
      await db.check();
    },
  };
}
