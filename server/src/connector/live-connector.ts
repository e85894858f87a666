import type { Clock } from '../base/clock.ts';
import type { LiveConfig } from '../config/live-config.ts';
import type { Connector } from './connector.ts';

/** The client of the connector backend that is configured at the time. */
export interface LiveConnector {
  /** The present client; `null` where the built-in team directory stands in for a backend. */
  readonly current: Connector | null;
  close(): Promise<void>;
}

/** The client of a backend, loaded with the first exchange. */
function lateConnector(url: string, clock: Clock): Connector {
  let opened: Promise<Connector> | undefined;
  return {
    exchange: async (request) => {
      opened ??= import('./open-connector.ts').then(({ openConnector }) => openConnector({ url, clock }));
      return (await opened).exchange(request);
    },
    close: async () => (await opened)?.close(),
    retire: async () => (await opened)?.retire(),
  };
}

/**
 * Opens the client of the configured backend, and another one when the configuration names another. Exchanges that are
 * under way end with the client that they began with. Rule: CONFIG-26.
 */
export function liveConnector(live: Pick<LiveConfig, 'current' | 'onChange'>, clock: Clock): LiveConnector {
  const open = (url: string | null) => (url === null ? null : lateConnector(url, clock));
  let url = live.current.connectorUrl;
  let current = open(url);
  const retiring = new Set<Connector>();

  live.onChange((config) => {
    if (config.connectorUrl === url) return;
    const earlier = current;
    url = config.connectorUrl;
    current = open(url);
    if (!earlier) return;
    retiring.add(earlier);
    void earlier.retire().finally(() => retiring.delete(earlier));
  });

  return {
    get current() {
      return current;
    },
    close: async () => {
      await Promise.all([current, ...retiring].map(async (connector) => connector?.close()));
    },
  };
}
