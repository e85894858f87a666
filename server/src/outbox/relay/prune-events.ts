import { day } from '../../base/clock.ts';
import { batchRows, removeInBatches } from '../../db/batches.ts';
import type { AllServices } from '../../services.ts';
import { entityStream } from '../envelope.ts';
import { deleteOldEvents } from '../event-log.ts';
import { selectRelays } from './relay-store.ts';
import { isSubscriptionTo } from './subscription.ts';

/**
 * Removes events whose retention is over, oldest first and in batches; returns their number. Events that an active
 * subscription has not delivered yet are kept until then. Rule: EVENT-20.
 */
export async function pruneEvents({
  db,
  clock,
  config,
  relays,
}: Pick<AllServices, 'db' | 'clock' | 'config' | 'relays'>): Promise<number> {
  // While the subscriptions are unknown, it is unknown which events are still needed.
  if (!relays.isAlive()) return 0;
  const beforeMs = clock.now() - config.eventRetentionDays * day;
  return removeInBatches(() =>
    db.transaction(async (tx) => {
      const names = new Set(relays.names().filter((name) => isSubscriptionTo(entityStream, name)));
      // Read inside the transaction: between two batches a subscription may be moved back, and is promised all that is
      // still kept.
      const inUse = (await selectRelays(tx)).filter(({ name }) => names.has(name));
      const upTo = Math.min(Number.MAX_SAFE_INTEGER, ...inUse.map(({ position }) => position));
      return deleteOldEvents(tx, { upTo, beforeMs, limit: batchRows });
    }),
  );
}
