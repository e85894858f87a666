import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Logger } from 'pino';
import { second } from '../base/clock.ts';
import type { Metrics } from './metrics.ts';

const host = '127.0.0.1';
/** A page elsewhere whose name leads to this machine still names its own host. */
const loopbackHost = /^(localhost|127(\.\d{1,3}){3})(:\d+)?$/i;
const timeoutMs = 10 * second;

/** Where metrics are shown to programs of this machine. */
export interface MetricsListener {
  /** `null`: it does not listen. */
  readonly address: string | null;
  close(): Promise<void>;
}

interface ListenerParts {
  /** `0`: none. */
  readonly port: number;
  /** Shows them now. */
  readonly isOn: () => boolean;
  readonly metrics: Metrics;
  readonly log: Logger;
}

function responder({ isOn, metrics, log }: ListenerParts) {
  async function respond({ method, url = '', headers }: IncomingMessage, response: ServerResponse): Promise<void> {
    const isThere = /^\/metrics\/?(\?|$)/.test(url) && loopbackHost.test(headers.host ?? '') && isOn();
    const isRead = method === 'GET' || method === 'HEAD';
    response.setHeader('cache-control', 'no-store');
    if (!isThere) return void response.writeHead(404).end();
    if (!isRead) return void response.writeHead(405, { allow: 'GET, HEAD' }).end();
    const { contentType, text } = await metrics.expose();
    response.writeHead(200, { 'content-type': contentType }).end(text);
  }
  return (message: IncomingMessage, response: ServerResponse): void => {
    respond(message, response).catch((error: unknown) => {
      log.error({ err: error }, 'the metrics could not be shown');
      response.destroy();
    });
  };
}

function listen(server: Server, port: number): Promise<AddressInfo> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- a server that listens on a port
    server.listen({ host, port }, () => resolve(server.address() as AddressInfo));
  });
}

/**
 * Shows the metrics at a port of the loopback interface, which no proxy leads to. A port that cannot be used is logged
 * as a warning: the service runs without. Rules: RUN-5, FIT-55, FIT-56.
 */
export async function openMetricsListener(parts: ListenerParts): Promise<MetricsListener> {
  const { port, log } = parts;
  if (port === 0) return { address: null, close: async () => {} };
  const server = createServer({ requestTimeout: timeoutMs, keepAliveTimeout: timeoutMs }, responder(parts));
  try {
    const address = await listen(server, port);
    return {
      address: `http://${host}:${address.port}/metrics`,
      close: () =>
        new Promise((resolve) => {
          server.close(() => resolve());
          server.closeAllConnections();
        }),
    };
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : String(error);
    log.warn(
      { port, code },
      'METRICS_PORT cannot be used, so there are no metrics: set it to a free port, or to 0 for none',
    );
    return { address: null, close: async () => {} };
  }
}
