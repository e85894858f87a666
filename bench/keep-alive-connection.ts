import { connect, type Socket } from 'node:net';

const headEnd = Buffer.from('\r\n\r\n');
const lengthHeader = /\r\ncontent-length: *(\d+)/i;
const bodySampleInterval = 64;

interface Options {
  readonly host: string;
  readonly port: number;
  readonly request: Buffer;
  readonly expectedBody: Buffer;
  onReady(connection: KeepAliveConnection): void;
  onResponse(latencyMs: number): void;
  onBroken(error: Error): void;
}

/**
 * One keep-alive connection with at most one request outstanding, always of the same bytes. `onReady(connection)` is
 * called when the connection is open and after each complete answer: from then on it may `send()`, until it is ended.
 * `onResponse(latencyMs)` is called for each complete answer. Every status must be 200, and every 64th body must equal
 * `expectedBody` (as must the first); otherwise, and when the server closes the connection, `onBroken(error)` is called
 * once and nothing further is sent.
 */
export class KeepAliveConnection {
  readonly #socket: Socket;
  readonly #options: Options;
  #pending: Buffer = Buffer.alloc(0);
  #sentAt = 0;
  #answers = 0;
  #ended = false;

  constructor(options: Options) {
    this.#options = options;
    this.#socket = connect({ host: options.host, port: options.port, noDelay: true });
    this.#socket.on('data', (chunk: Buffer) => this.#receive(chunk));
    this.#socket.on('error', (error) => this.#break(error));
    this.#socket.on('close', () => this.#break(new Error('the server closed a connection')));
    this.#socket.on('connect', () => this.#options.onReady(this));
  }

  /** Closes the connection; an outstanding answer is dropped. */
  end(): void {
    this.#ended = true;
    this.#socket.destroy();
  }

  /** Sends the request, whose latency counts from `since`; the connection must be ready. */
  send(since = performance.now()): void {
    this.#sentAt = since;
    this.#socket.write(this.#options.request);
  }

  #receive(chunk: Buffer): void {
    if (this.#ended) return;
    const bytes = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk]);
    try {
      this.#consume(bytes);
    } catch (error) {
      this.#break(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #consume(bytes: Buffer): void {
    const headBytes = bytes.indexOf(headEnd);
    if (headBytes === -1) {
      this.#pending = bytes;
      return;
    }
    const head = bytes.toString('latin1', 0, headBytes);
    const bodyStart = headBytes + headEnd.length;
    const bodyBytes = Number(lengthHeader.exec(head)?.[1] ?? Number.NaN);
    if (!head.startsWith('HTTP/1.1 200 ')) {
      throw new Error(
        `answered "${head.split('\r\n', 1)[0]}" instead of 200: ${bytes.toString('latin1', bodyStart, bodyStart + 300)}`,
      );
    }
    if (Number.isNaN(bodyBytes)) throw new Error('an answer has no content-length');
    if (bytes.length < bodyStart + bodyBytes) {
      this.#pending = bytes;
      return;
    }
    if (bytes.length > bodyStart + bodyBytes) throw new Error('an answer is longer than its content-length');
    this.#complete(bytes, bodyStart);
  }

  #complete(bytes: Buffer, bodyStart: number): void {
    if (this.#answers++ % bodySampleInterval === 0 && !bytes.subarray(bodyStart).equals(this.#options.expectedBody)) {
      throw new Error(`an answer has another body: ${bytes.toString('latin1', bodyStart, bodyStart + 300)}`);
    }
    this.#pending = Buffer.alloc(0);
    this.#options.onResponse(performance.now() - this.#sentAt);
    this.#options.onReady(this);
  }

  #break(error: Error): void {
    if (this.#ended) return;
    this.end();
    this.#options.onBroken(error);
  }
}
