import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** A proxy between a node and PostgreSQL, which may be cut at a chosen time. */
export class StoreWire {
  readonly #server: Server;
  readonly #target: URL;
  readonly #sockets = new Set<Socket>();
  #cutAfter: RegExp | null = null;
  #cuts = 0;

  private constructor(target: URL) {
    this.#target = target;
    this.#server = createServer((socket) => this.#connect(socket));
  }

  /** Lays a wire to the server of an address. */
  static async lay(address: string): Promise<StoreWire> {
    const wire = new StoreWire(new URL(address));
    wire.#server.listen(0, '127.0.0.1');
    await once(wire.#server, 'listening');
    return wire;
  }

  /** The address, by way of this wire. */
  get url(): string {
    const url = new URL(this.#target.href);
    url.port = String((this.#server.address() as AddressInfo).port);
    return url.href;
  }

  /** Number of cuts. */
  get cuts(): number {
    return this.#cuts;
  }

  /** Hands on the next thing that is said to the server and matches, and nothing of the answer: then it is cut. */
  cutAfter(pattern: RegExp): void {
    this.#cutAfter = pattern;
  }

  async close(): Promise<void> {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #connect(socket: Socket): void {
    const far = connect(Number(this.#target.port), this.#target.hostname);
    let isCut = false;
    for (const [one, other] of [
      [socket, far],
      [far, socket],
    ] as const) {
      this.#sockets.add(one);
      one.on('error', () => other.destroy());
      one.on('close', () => {
        this.#sockets.delete(one);
        other.destroy();
      });
    }
    socket.on('data', (chunk) => {
      if (this.#cutAfter?.test(chunk.toString('latin1'))) {
        this.#cutAfter = null;
        isCut = true;
      }
      far.write(chunk);
    });
    far.on('data', (chunk) => {
      if (!isCut) return void socket.write(chunk);
      this.#cuts += 1;
      socket.destroy();
    });
  }
}
