import type { AfterResponse } from '../base/after-response.ts';
import { minute, toTimestamp } from '../base/clock.ts';
import type { Database } from '../db/database.ts';
import { type AuditParts, appendAudit } from './audit-log.ts';

/** Networks that get a row of their own in a minute; all others share one. */
const networksMax = 100;
const severalNetworks = 'several';

interface Parts extends AuditParts {
  readonly db: Database;
  readonly afterResponse: AfterResponse;
}

interface Refusals {
  readonly orgId: string;
  readonly network: string;
  readonly requestId: string;
}

interface Counted extends Refusals {
  readonly count: number;
  readonly sinceMs: number;
}

/**
 * Counter of rejected sign-ins beyond those that are recorded one by one; a record a minute has the count. Rule:
 * AUDIT-17.
 */
export interface RejectionCounter {
  /** Counts one. Its request id stands for all those of its row. */
  add(error: Refusals): void;
  /** Writes the counts so far; called each minute and when the service stops. */
  write(): Promise<void>;
}

/** Makes the counters of this process. */
export function rejectionCounter(services: () => Parts): RejectionCounter {
  let counted = new Map<string, Counted>();
  let timer: NodeJS.Timeout | null = null;

  function toRecord({ orgId, network, requestId, count, sinceMs }: Counted, nowMs: number) {
    return {
      action: 'sign-in.refused',
      outcome: 'failure',
      orgId,
      actor: null,
      subjectId: null,
      origin: { requestId, network },
      details: { count, since: toTimestamp(sinceMs), until: toTimestamp(nowMs) },
    } as const;
  }

  async function write(): Promise<void> {
    if (timer) clearTimeout(timer);
    timer = null;
    if (counted.size === 0) return;
    const { db, clock, ...parts } = services();
    const records = [...counted.values()].map((one) => toRecord(one, clock.now()));
    counted = new Map();
    await db.transaction((tx) => appendAudit(tx, { clock, ...parts }, ...records));
  }

  return {
    write,
    add({ orgId, network, requestId }) {
      const { clock, afterResponse } = services();
      const name = counted.has(network) || counted.size < networksMax ? network : severalNetworks;
      const fresh = { orgId, network: name, requestId, count: 0, sinceMs: clock.now() };
      const known = counted.get(name) ?? fresh;
      counted.set(name, { ...known, count: known.count + 1 });
      timer ??= setTimeout(() => {
        timer = null;
        afterResponse.run('record of counted rejected sign-ins', write);
      }, minute).unref();
    },
  };
}
