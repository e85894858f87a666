import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** A wire between a node and PostgreSQL on which, for a while, nothing passes and nothing is closed. */
export class SilentWire {
  readonly #server: Server;
  readonly #pairs = new Set<readonly [Socket, Socket]>();
  /** Data sent since it is silent, and the receiver. */
  #held: (readonly [Socket, Buffer])[] = [];
  #isSilent = false;

  private constructor(target: number) {
    this.#server = createServer((near) => this.#join(near, target));
  }

  /** Lays a wire to a port of the loopback interface. */
  static async lay(target: number): Promise<SilentWire> {
    const wire = new SilentWire(target);
    wire.#server.listen(0, '127.0.0.1');
    await once(wire.#server, 'listening');
    return wire;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Returns whether it holds data that was not passed on. */
  get isHolding(): boolean {
    return this.#held.length > 0;
  }

  /** From now on it passes on nothing, neither data nor the end of a connection. */
  hush(): void {
    this.#isSilent = true;
  }

  /** Passes on everything that waited. */
  speak(): void {
    this.#isSilent = false;
    for (const [to, chunk] of this.#held.splice(0)) to.write(chunk);
    for (const [near, far] of this.#pairs) {
      if (near.destroyed || far.destroyed) this.#close([near, far]);
    }
  }

  /** Breaks every connection to the node, as a system does that knows nothing of it any more. */
  reset(): void {
    for (const [near, far] of this.#pairs) {
      near.resetAndDestroy();
      far.destroy();
    }
    this.#pairs.clear();
    this.#held = [];
  }

  async close(): Promise<void> {
    this.#server.close();
    for (const pair of this.#pairs) this.#close(pair);
  }

  #close(pair: readonly [Socket, Socket]): void {
    this.#pairs.delete(pair);
    for (const socket of pair) socket.destroy();
  }

  #join(near: Socket, target: number): void {
    const far = connect(target, '127.0.0.1');
    const pair = [near, far] as const;
    this.#pairs.add(pair);
    for (const [one, other] of [pair, [far, near] as const]) {
      one.setNoDelay(true);
      one.on('error', () => {});
      one.on('data', (chunk) => {
        if (this.#isSilent) this.#held.push([other, chunk]);
        else other.write(chunk);
      });
      one.on('close', () => {
        if (!this.#isSilent) this.#close(pair);
      });
    }
  }
}
