import { randomUUID } from 'node:crypto';
import type { Logger } from 'pino';
import { readAuditEvents, selectAuditEnd } from '../audit-log/audit-events.ts';
import type { LiveConfig } from '../config/live-config.ts';
import { closeWebhooks, listWebhookRelays, switchOff } from '../features/webhooks/public.ts';
import { liveBroker } from '../outbox/brokers/live-broker.ts';
import { auditStream, entityStream, type StreamName } from '../outbox/envelope.ts';
import { readEvents, readNewest } from '../outbox/event-log.ts';
import { type LogWatch, logWatch } from '../outbox/log-watch.ts';
import { type Relays, startRelays } from '../outbox/relay/relays.ts';
import { webhookRetry } from '../outbox/relay/retry.ts';
import type { EventSource } from '../outbox/relay/subscription.ts';
import type { AllServices } from '../services.ts';

/** The logs whose events go out. */
const sources: Readonly<Record<StreamName, EventSource>> = {
  [entityStream]: { newest: readNewest, read: readEvents },
  [auditStream]: { newest: selectAuditEnd, read: (read, { after, limit }) => readAuditEvents(read, after, limit) },
};

/** Parts that send events out of this process. */
interface Events {
  readonly eventWatch: LogWatch;
  readonly relays: Relays;
}

/**
 * Begins to relay events.
 * @param services are asked for once the composition is done
 */
export function openEvents(
  { live, log }: { readonly live: LiveConfig; readonly log: Logger },
  parts: Pick<AllServices, 'db' | 'clock' | 'newId' | 'metrics'>,
  services: () => AllServices,
): Events {
  const broker = liveBroker({ live, log, sources, db: parts.db });
  const eventWatch = logWatch(parts.db, log);

  async function webhooks() {
    const relays = await listWebhookRelays(services());
    return relays.map(({ relay, webhookId, types, sink }) => ({
      name: relay,
      source: sources[entityStream],
      types,
      sink,
      retry: webhookRetry,
      disable: (kind: 'gone' | 'failing', reason: string) => switchOff(services(), webhookId, { kind, reason }),
    }));
  }

  const relays = startRelays({
    ...parts,
    log,
    watch: eventWatch,
    // The embedded store has one process: an earlier owner of a lease is gone.
    owner: parts.db.isShared ? randomUUID() : 'embedded',
    subscriptions: async () => [...(await broker.subscriptions()), ...(await webhooks())],
  });
  let closing: Promise<void> | undefined;
  const closeAll = async (msMax?: number) => {
    await relays.close(msMax);
    eventWatch.close();
    await Promise.all([broker.close(), closeWebhooks(services())]);
    await relays.ended();
  };
  const close = (msMax?: number) => {
    closing ??= closeAll(msMax);
    return closing;
  };
  return { eventWatch, relays: { ...relays, close } };
}
