import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { vi } from 'vitest';
import type { Json, TestApp } from './test-app.ts';

/** One answer as it came over the wire. */
export interface RawResponse {
  readonly status: number;
  /** Names in lower case; of a doubled header the last value. */
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
  /** The text as JSON; `null` where it is none. */
  readonly body: Json;
}

/** Outcome of a connection. */
export interface RawOutcome {
  readonly answers: readonly RawResponse[];
  readonly text: string;
  /** The service closed the connection. */
  readonly closed: boolean;
  /** Milliseconds from the start until then. */
  readonly ms: number;
}

function parseHeaders(lines: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(':');
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  return headers;
}

function parseBody(text: string): Json {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Splits what came into answers, by their content length. */
function parseAnswers(received: string): RawResponse[] {
  const responses: RawResponse[] = [];
  let rest = received;
  for (let end = rest.indexOf('\r\n\r\n'); end >= 0; end = rest.indexOf('\r\n\r\n')) {
    const [first = '', ...lines] = rest.slice(0, end).split('\r\n');
    const headers = parseHeaders(lines);
    const bodyEnd = end + 4 + Number(headers['content-length'] ?? 0);
    const text = rest.slice(end + 4, bodyEnd);
    responses.push({ status: Number(first.split(' ')[1]), headers, text, body: parseBody(text) });
    rest = rest.slice(bodyEnd);
  }
  return responses;
}

const opened = new Set<Socket>();

/** Ends every connection that was left open, whichever side has ended already. */
export function hangUp(): void {
  for (const socket of opened) socket.destroy();
  opened.clear();
}

/** A connection that sends exactly the bytes it is given. */
export class RawConnection {
  readonly socket: Socket;
  readonly #startedMs = performance.now();
  #received = '';
  #closedMs: number | null = null;
  #wake = () => {};

  constructor(app: TestApp) {
    this.socket = connect({ host: '127.0.0.1', port: Number(new URL(app.url).port), allowHalfOpen: true });
    opened.add(this.socket);
    this.socket.setEncoding('latin1');
    this.socket.on('data', (text: string) => {
      this.#received += text;
      this.#wake();
    });
    const closed = () => {
      this.#closedMs ??= performance.now() - this.#startedMs;
      this.#wake();
    };
    this.socket.on('end', closed).on('close', closed).on('error', closed);
  }

  /** Sends bytes, or text as latin1. */
  send(bytes: string | Uint8Array): this {
    if (this.socket.writable) this.socket.write(typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes);
    return this;
  }

  get outcome(): RawOutcome {
    const closed = this.#closedMs !== null;
    const ms = this.#closedMs ?? performance.now() - this.#startedMs;
    return { answers: parseAnswers(this.#received), text: this.#received, closed, ms };
  }

  /** Waits until `isDone` or, at the latest, until the time is over, and answers what is known then. */
  async until(isDone: (outcome: RawOutcome) => boolean, timeoutMs = 5_000): Promise<RawOutcome> {
    const endMs = performance.now() + timeoutMs;
    while (!isDone(this.outcome) && performance.now() < endMs) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, endMs - performance.now());
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    return this.outcome;
  }

  /** Waits until the service closes the connection. */
  closed(timeoutMs?: number): Promise<RawOutcome> {
    return this.until(({ closed }) => closed, timeoutMs);
  }

  destroy(): void {
    this.socket.destroy();
  }
}

/** Sends a request but for the end of its body, and waits until it is let in, which is when its body is read. */
export async function sendBegun(app: TestApp, bytes: string): Promise<RawConnection> {
  const arrived = once(app.app.server, 'request');
  const connection = new RawConnection(app).send(bytes);
  const [message] = (await arrived) as [IncomingMessage];
  await vi.waitUntil(() => message.listenerCount('data') > 0, { interval: 1 });
  return connection;
}

/** Sends bytes on a connection of their own and answers what comes back until `count` answers, the end, or 5 seconds. */
export async function sendRaw(app: TestApp, bytes: string | Uint8Array, count = 1): Promise<RawOutcome> {
  const connection = new RawConnection(app).send(bytes);
  try {
    return await connection.until(({ answers: responses, closed }) => closed || responses.length >= count);
  } finally {
    connection.destroy();
  }
}

/** A request as text: the first line, headers, a blank line and the body. */
export function requestText(firstLine: string, headers: readonly string[] = ['Host: x'], body = ''): string {
  return [firstLine, ...headers, '', body].join('\r\n');
}
