import type { Logger } from 'pino';
import type { LiveConfig } from '../../config/live-config.ts';
import type { Database } from '../../db/database.ts';
import { type StreamName, streamNames } from '../envelope.ts';
import { insertRelay } from '../relay/relay-store.ts';
import { brokerRetry } from '../relay/retry.ts';
import { type EventSource, type Subscription, subscriptionName } from '../relay/subscription.ts';
import type { Broker } from './broker.ts';

/** Returns the name of the subscription of the broker to a stream. */
function brokerRelay(stream: StreamName): string {
  return subscriptionName(stream, 'broker');
}

/** The broker of the present configuration. */
export interface LiveBroker {
  /** Returns the subscriptions of the broker; none where no broker is configured. */
  subscriptions(): Promise<readonly Subscription[]>;
  close(): Promise<void>;
}

interface LiveBrokerParts {
  readonly live: LiveConfig;
  readonly db: Database;
  readonly log: Logger;
  readonly sources: Readonly<Record<StreamName, EventSource>>;
}

/** Makes what exchanges the broker as soon as the configuration names another. Rules: EVENT-16, CONFIG-25. */
export function liveBroker({ live, db, log, sources }: LiveBrokerParts): LiveBroker {
  let opened: { readonly url: string; readonly broker: Broker } | null = null;
  let subscriptions: readonly Subscription[] = [];

  async function close(): Promise<void> {
    const { broker } = opened ?? {};
    opened = null;
    subscriptions = [];
    await broker?.close();
  }

  async function open(url: NonNullable<typeof live.current.eventsUrl>): Promise<void> {
    // The first one gets all that is kept; after that the position is known.
    await db.transaction(async (tx) => {
      for (const stream of streamNames) await insertRelay(tx, brokerRelay(stream), 0);
    });
    // Loaded on demand: the clients of both brokers are large.
    const { openBroker } = await import('./broker.ts');
    const form = () => ({ format: live.current.eventsFormat, source: live.current.baseUrl });
    const broker = openBroker({ url, log, form, retentionDays: () => live.current.eventRetentionDays });
    opened = { url: url.expose(), broker };
    subscriptions = streamNames.map((stream) => ({
      name: brokerRelay(stream),
      source: sources[stream],
      types: null,
      sink: broker.sinkTo(stream),
      retry: brokerRetry,
    }));
  }

  return {
    async subscriptions() {
      const url = live.current.eventsUrl;
      if (url?.expose() === opened?.url) return subscriptions;
      await close();
      if (url) await open(url);
      return subscriptions;
    },
    close,
  };
}
