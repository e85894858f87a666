import { day } from '../../base/clock.ts';
import { batchRows, removeInBatches } from '../../db/batches.ts';
import type { AllServices } from '../../services.ts';
import { entityStream } from '../envelope.ts';
import { deleteOldEvents } from '../event-log.ts';
import { isOutletOf } from './outlet.ts';
import { selectRelays } from './relay-store.ts';

/**
 * Removes events whose time to be kept is over, oldest first and in batches; answers how many. What has not gone out yet
 * on a way that is in use is kept for as long as that takes. Rule: EVENT-20.
 */
export async function pruneEvents({
  db,
  clock,
  config,
  relays,
}: Pick<AllServices, 'db' | 'clock' | 'config' | 'relays'>): Promise<number> {
  // As long as nobody knows the ways out, nobody knows what is still needed.
  if (!relays.isAlive()) return 0;
  const beforeMs = clock.now() - config.eventRetentionDays * day;
  return removeInBatches(() =>
    db.transaction(async (tx) => {
      const names = new Set(relays.names().filter((name) => isOutletOf(entityStream, name)));
      // Asked for in here: between two batches a way out may be moved back, and is promised what is still kept.
      const inUse = (await selectRelays(tx)).filter(({ name }) => names.has(name));
      const upTo = Math.min(Number.MAX_SAFE_INTEGER, ...inUse.map(({ position }) => position));
      return deleteOldEvents(tx, { upTo, beforeMs, limit: batchRows });
    }),
  );
}
