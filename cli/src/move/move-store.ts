import { randomInt } from 'node:crypto';
import { systemClock, toTimestamp } from '../../../server/src/base/clock.ts';
import type { Secret } from '../../../server/src/base/secret.ts';
import type { Config } from '../../../server/src/config/config.ts';
import type { Database, Tx } from '../../../server/src/db/database.ts';
import { requireStore } from '../../../server/src/db/files/data-dir.ts';
import { checksumOfTable, copyTable, type TableChecksum } from '../../../server/src/db/move/move-rows.ts';
import {
  addressText,
  analyzeTables,
  claimTarget,
  emptyTables,
  finishMove,
  requireOwnMove,
  selectCounters,
  unfinishedMove,
} from '../../../server/src/db/move/move-target.ts';
import { type MovedMark, markMoved, readMoved } from '../../../server/src/db/move/moved.ts';
import { describeTables, type MovedTable } from '../../../server/src/db/move/moved-tables.ts';
import { openPostgres } from '../../../server/src/db/postgres/postgres.ts';
import { migrate, requireCurrentSchema } from '../../../server/src/db/schema/migrate.ts';
import { openSqlite } from '../../../server/src/db/sqlite/sqlite.ts';
import { insertSharedKeys } from '../../../server/src/keys/key-store.ts';
import { CommandError } from '../failures.ts';
import { readMovedKeys } from './moved-keys.ts';

type Progress = (done: number, total: number) => void;
const moveMax = 2 ** 48 - 1;

/** Input of a move. */
export interface MoveInput {
  readonly config: Config;
  readonly to: Secret;
  /** What named it: an option, or the variable. */
  readonly setting: string;
  /** An unfinished move into the same database may be started over. */
  readonly restart: boolean;
  readonly progress: Progress;
}

/** A move that took place. */
export interface Moved {
  readonly mark: MovedMark;
  /** Only the last step was left to be done. */
  readonly isResumed: boolean;
}

interface Move {
  readonly input: MoveInput;
  readonly target: Database;
  /** Number of the move. */
  readonly move: number;
}

/** Final step, in which neither store is in use: if it is cut short it has to be run again. */
async function finish(target: Database, move: number): Promise<void> {
  try {
    await finishMove(target, move);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new CommandError(
      'failed',
      `Everything is copied, but the last step failed (${reason}): run the same command again, which does only that, or go back with latchkey move --back`,
      { cause: error },
    );
  }
}

/** Ends a move whose last step was not done. */
async function resume(target: Database, mark: MovedMark): Promise<Moved> {
  if ((await unfinishedMove(target)) !== mark.move) {
    throw new CommandError(
      'refused',
      `The store was moved to ${mark.to} on ${mark.movedAt} already: latchkey move --back has it be used again`,
    );
  }
  await finish(target, mark.move);
  return { mark, isResumed: true };
}

function requireSame({ name }: MovedTable, here: TableChecksum, there: TableChecksum): void {
  if (here.rows === there.rows && here.digest === there.digest) return;
  const describe = ({ rows, digest }: TableChecksum) => `${rows} rows, digest ${digest}`;
  throw new CommandError(
    'failed',
    `The table ${name} is not the same in the database: here ${describe(here)}; there ${describe(there)}. Nothing was moved`,
  );
}

/** Copies every table and reads it again; returns the checksums, which are the same on both sides. */
async function copyTables({ input, target }: Move, source: Tx, tables: readonly MovedTable[]) {
  const total = 2 * tables.reduce((sum, { rows }) => sum + rows, 0);
  let done = 0;
  const advance = (rows: number) => {
    done += rows;
    input.progress(done, total);
  };
  const copied: { readonly table: MovedTable; readonly read: TableChecksum }[] = [];
  for (const table of tables) copied.push({ table, read: await copyTable({ source, target, advance }, table) });
  await analyzeTables(target, tables);
  for (const { table, read } of copied) requireSame(table, read, await checksumOfTable(target.read, table, advance));
  return copied.map(({ table, read }) => ({ table: table.name, ...read }));
}

/** Copies everything under a lock: the transaction writes nothing, but no other can write while it lasts. */
async function moveFrozen(source: Tx, { input, target, move }: Move): Promise<MovedMark> {
  const { config, to } = input;
  const keys = await readMovedKeys(config, source);
  const tables = await describeTables(source);
  await emptyTables(target, tables);
  const digests = await copyTables({ input, target, move }, source, tables);
  if (keys !== null) await insertSharedKeys(target, keys.content, systemClock.now());
  await requireOwnMove(target, move);
  const mark = {
    to: addressText(to),
    movedAt: toTimestamp(systemClock.now()),
    move,
    tables: digests,
    counters: await selectCounters(target.read),
    signingKeys: keys?.count ?? 0,
  };
  markMoved(config.dataDir, mark);
  await finish(target, move);
  return mark;
}

async function moveAll(input: MoveInput, target: Database): Promise<Moved> {
  const { config, restart } = input;
  const move = 1 + randomInt(moveMax);
  const source = openSqlite(config.dataDir);
  try {
    await requireCurrentSchema(source);
    // Before the database is touched; they are read again once they can no longer change.
    await readMovedKeys(config, source.read);
    await claimTarget(target, { move, restart });
    await migrate(target, systemClock);
    const mark = await source.transaction((tx) => moveFrozen(tx, { input, target, move }));
    return { mark, isResumed: false };
  } finally {
    await source.close();
  }
}

/**
 * Moves the embedded store into an empty database, and takes the former out of use. If it is interrupted, exactly one
 * of the two is in use, or neither until it is run again. Ends the command, or throws StartupError, where it cannot be
 * done; the embedded store stays in use then. Rules: CLI-30, CLI-31, CLI-32.
 */
export async function moveStore(input: MoveInput): Promise<Moved> {
  const { dataDir } = input.config;
  requireStore(dataDir);
  const mark = readMoved(dataDir);
  const target = await openPostgres(input.to, null, { opening: 'move', setting: input.setting });
  try {
    return mark === null ? await moveAll(input, target) : await resume(target, mark);
  } finally {
    await target.close();
  }
}
