import { Agent, type OutgoingHttpHeaders, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { percentile } from '../harness/statistics.ts';

/** What is asked for. */
export interface Wanted {
  readonly method?: string;
  readonly path: string;
  readonly body?: unknown;
  readonly headers?: OutgoingHttpHeaders;
}

/** A call that was made, its times by the monotonic clock. */
export interface Call {
  readonly sentMs: number;
  readonly tookMs: number;
  /** As text, or the error's code in its place. */
  readonly status: string;
  readonly retryAfter?: string | undefined;
}

interface Options {
  readonly service: { readonly api: string };
  readonly token: string;
}

/** Calls a service on connections that stay open, and remembers each call. */
export class Callers {
  readonly calls: Call[] = [];
  readonly #options: Options;
  readonly #agent = new Agent({ keepAlive: true, noDelay: true });
  readonly #pending = new Set<Promise<Call>>();

  constructor(options: Options) {
    this.#options = options;
  }

  /** Makes one call and reads the answer. Never throws. */
  call({ method = 'GET', path, body, headers = {} }: Wanted): Promise<Call> {
    const { service, token } = this.#options;
    const sent = body === undefined ? undefined : JSON.stringify(body);
    const type = sent === undefined ? {} : { 'content-type': 'application/json', 'content-length': sent.length };
    const sentMs = performance.now();
    const ended = new Promise<Call>((resolve) => {
      const done = (status: string, retryAfter?: string) => {
        const call = { sentMs, tookMs: performance.now() - sentMs, status, retryAfter };
        this.calls.push(call);
        resolve(call);
      };
      const failed = (error: NodeJS.ErrnoException) => done(error.code ?? error.message);
      const own = { authorization: `Bearer ${token}`, ...type };
      const options = { agent: this.#agent, method, headers: { ...own, ...headers } };
      const asked = request(`${service.api}${path}`, options, (response) => {
        response.resume();
        response.once('error', failed);
        response.once('end', () => done(String(response.statusCode), response.headers['retry-after']));
      });
      asked.once('error', failed);
      asked.end(sent);
    });
    this.#pending.add(ended);
    void ended.finally(() => this.#pending.delete(ended));
    return ended;
  }

  /** Calls at a rate, whether or not what was asked earlier is answered. */
  async atRate(perSecond: number, seconds: number, next: (count: number) => Wanted): Promise<void> {
    const startedMs = performance.now();
    for (let count = 0; count < perSecond * seconds; ) {
      const due = Math.min(perSecond * seconds, ((performance.now() - startedMs) / 1_000) * perSecond);
      for (; count < due; count += 1) void this.call(next(count));
      await sleep(2);
    }
  }

  /** So many callers who each ask anew as soon as they were answered, until told to stop. */
  crowd(size: number, next: (count: number) => Wanted): () => Promise<void> {
    const over = new AbortController();
    let count = 0;
    const working = Array.from({ length: size }, async () => {
      while (!over.signal.aborted) {
        count += 1;
        const { status } = await this.call(next(count));
        if (!/^\d/.test(status)) await sleep(20);
      }
    });
    return async () => {
      over.abort();
      await Promise.all(working);
    };
  }

  /** Waits until everything is answered. */
  async settled(): Promise<void> {
    await Promise.all(this.#pending);
  }

  /** Takes what was called so far. */
  take(): readonly Call[] {
    return this.calls.splice(0);
  }

  close(): void {
    this.#agent.destroy();
  }
}

/** The value that `share` (0 to 1) of the calls don't exceed, in milliseconds; NaN for none. */
export function percentileMs(calls: readonly Call[], share: number): number {
  return percentile(
    calls.map(({ tookMs }) => tookMs),
    share,
  );
}

/** How often each status came, as a text. */
export function tally(calls: readonly Call[]): string {
  const counts: Record<string, number> = {};
  for (const { status } of calls) counts[status] = (counts[status] ?? 0) + 1;
  return Object.entries(counts)
    .map(([status, count]) => `${count} × ${status}`)
    .join(', ');
}
