import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer, type Server, type Socket } from 'node:net';

/** A request as it came over the wire. */
export interface WireRequest {
  readonly line: string;
  /** Each header line, as it was written, in order. */
  readonly headers: readonly string[];
  readonly body: string;
}

/** Behaviour of a backend for a request: anything that a socket can do. */
export type Behaviour = (socket: Socket, request: WireRequest) => void;

function splitRequest(received: string): WireRequest | null {
  const end = received.indexOf('\r\n\r\n');
  if (end < 0) return null;
  const [line = '', ...headers] = received.slice(0, end).split('\r\n');
  const length = Number(/^content-length: (\d+)$/im.exec(received.slice(0, end))?.[1] ?? 0);
  const body = received.slice(end + 4);
  return body.length < length ? null : { line, headers, body };
}

/** The bytes of an answer with a length. */
export function responseBytes(status: number, body: string | Buffer, headers: readonly string[] = []): Buffer {
  const bytes = Buffer.from(body);
  const head = [`HTTP/1.1 ${status} Whatever`, `content-length: ${bytes.length}`, ...headers, '', ''].join('\r\n');
  return Buffer.concat([Buffer.from(head), bytes]);
}

/** A behaviour that answers and keeps the connection. */
export function responding(status: number, body: string | Buffer = '{}', headers: readonly string[] = []): Behaviour {
  return (socket) => void socket.write(responseBytes(status, body, headers));
}

/** A behaviour that accepts and says nothing. */
export const silent: Behaviour = () => {};

/** A backend on a socket of its own that misbehaves as a test wants. */
export class FakeBackend {
  /** Behaviour for later requests. */
  behave: Behaviour = responding(200);
  readonly requests: WireRequest[] = [];
  readonly sockets = new Set<Socket>();
  /** Sockets that a request arrived on. */
  readonly asked = new Set<Socket>();
  connections = 0;
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((socket) => this.#accept(socket));
  }

  static async start(behave: Behaviour = responding(200)): Promise<FakeBackend> {
    const backend = new FakeBackend();
    backend.behave = behave;
    await backend.listen(0);
    return backend;
  }

  /** Listens, after a stop once more, on a port. */
  async listen(port: number): Promise<void> {
    this.#server.listen(port, '127.0.0.1');
    await once(this.#server, 'listening');
    this.#port = (this.#server.address() as AddressInfo).port;
  }

  #port = 0;

  get port(): number {
    return this.#port;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  #accept(socket: Socket): void {
    this.connections += 1;
    this.sockets.add(socket);
    let received = '';
    socket.on('error', () => {});
    socket.on('close', () => {
      this.sockets.delete(socket);
      this.asked.delete(socket);
    });
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
      const request = splitRequest(received);
      if (!request) return;
      received = '';
      this.requests.push(request);
      this.asked.add(socket);
      this.behave(socket, request);
    });
  }

  /** Closes all connections and stops listening. */
  async stop(): Promise<void> {
    if (!this.#server.listening) return;
    for (const socket of this.sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }
}
