import { Agent, type OutgoingHttpHeaders, request } from 'node:http';

const oneConnection = new Agent({ keepAlive: true, maxSockets: 1 });

/** A client of a server. */
export interface Caller {
  /** The address with /api/v1. */
  readonly api: string;
  readonly headers: OutgoingHttpHeaders;
  readonly agent?: Agent;
}

/** What is asked for. */
export interface Wanted {
  readonly method?: string;
  readonly path: string;
  readonly json?: unknown;
}

/** An answer, and when it came. */
export interface Timed {
  readonly body: Buffer;
  /** The first byte of the body. */
  readonly firstByteMs: number;
  readonly totalMs: number;
}

/**
 * Sends one request and reads the answer as fast as it comes; throws when the status is no 2xx. All requests share one
 * connection but those with an `agent` of their own.
 */
export function timedRequest(caller: Caller, { method = 'GET', path, json }: Wanted): Promise<Timed> {
  const { api, headers, agent = oneConnection } = caller;
  const payload = json === undefined ? undefined : JSON.stringify(json);
  const type = payload === undefined ? {} : { 'content-type': 'application/json' };
  return new Promise((resolve, reject) => {
    const sentAt = performance.now();
    const sent = request(`${api}${path}`, { agent, method, headers: { ...headers, ...type } }, (response) => {
      const chunks: Buffer[] = [];
      let firstByteMs = Number.NaN;
      response.on('data', (chunk: Buffer) => {
        if (chunks.length === 0) firstByteMs = performance.now() - sentAt;
        chunks.push(chunk);
      });
      response.once('error', reject);
      response.once('end', () => {
        const totalMs = performance.now() - sentAt;
        const body = Buffer.concat(chunks);
        const { statusCode = 0 } = response;
        if (statusCode >= 200 && statusCode < 300) resolve({ body, firstByteMs, totalMs });
        else reject(new Error(`${method} ${path} was answered ${statusCode}: ${body.toString('utf8', 0, 300)}`));
      });
    });
    sent.once('error', reject);
    sent.end(payload);
  });
}
