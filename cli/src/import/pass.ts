import { setTimeout } from 'node:timers/promises';
import type { Reader, Tx } from '../../../server/src/db/database.ts';
import { selectActiveOrganization } from '../../../server/src/db/members/organization.ts';
import { CommandError } from '../failures.ts';
import type { operatorServices } from '../operator-store.ts';
import type { Tally } from './report.ts';
import type { Staging } from './staging.ts';

/** Records of one transaction: some hundred milliseconds, which a running server has to wait. */
export const atOnce = 1_000;
/** Longer than a waiting server takes to try again, so that it gets its turn between two transactions. */
const pauseMs = 15;

/** The services of a command. */
export type Store = ReturnType<typeof operatorServices>;

/** One way through the records of a file: to check them against the store, or to write them. */
export interface Pass {
  readonly isWriting: boolean;
  readonly services: Store;
  readonly orgId: string;
  readonly staging: Staging;
  readonly tally: Tally;
  /** Milliseconds since 1970: the time that all plans are based on. */
  readonly nowMs: number;
  /** Tokens that ended before, in milliseconds since 1970, are kept no more. */
  readonly keptSinceMs: number;
  /** Counts records that are done. */
  readonly advance: (count: number) => void;
}

/** Writes some records in one transaction, provided the organization exists; then a running server gets its turn. */
async function inTransaction<T>({ services, orgId }: Pass, work: (tx: Tx) => Promise<T>): Promise<T> {
  const done = await services.db.transaction(async (tx) => {
    if ((await selectActiveOrganization(tx))?.id === orgId) return work(tx);
    throw new CommandError('refused', 'The organization was deleted meanwhile: the records imported so far stay in it');
  });
  await setTimeout(pauseMs);
  return done;
}

/** Does one step: on the committed state to check, in a transaction of its own to write. */
export function step<T>(pass: Pass, work: (read: Reader, tx: Tx | null) => Promise<T>): Promise<T> {
  return pass.isWriting ? inTransaction(pass, (tx) => work(tx, tx)) : work(pass.services.db.read, null);
}
