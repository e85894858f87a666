import type { KeepAliveConnection } from './keep-alive-connection.ts';

/**
 * Sends requests at a fixed rate on connections that are ready, whether or not earlier ones were answered. The latency of
 * a request counts from when it could have been sent, had a connection been ready: a server that stands still delays them
 * all, and all of them tell.
 */
export class Pace {
  /** How long after its time each request was sent: what the generator itself was late by, in milliseconds. */
  readonly latenessMs: number[] = [];
  readonly #perSecond: number;
  readonly #ready: KeepAliveConnection[] = [];
  readonly #waiting: number[] = [];
  #timer: NodeJS.Timeout | undefined;

  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  start(): void {
    const startedAt = performance.now();
    let sent = 0;
    this.#timer = setInterval(() => {
      const now = performance.now();
      for (; startedAt + (sent * 1000) / this.#perSecond <= now; sent++) {
        this.latenessMs.push(now - startedAt - (sent * 1000) / this.#perSecond);
        const connection = this.#ready.pop();
        if (connection === undefined) this.#waiting.push(now);
        else connection.send();
      }
    }, 1);
  }

  /** To be told of each connection that may send. */
  ready(connection: KeepAliveConnection): void {
    const dueAt = this.#waiting.shift();
    if (dueAt === undefined) this.#ready.push(connection);
    else connection.send(dueAt);
  }

  end(): void {
    clearInterval(this.#timer);
  }
}
