import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

/** A proxy to a server of this machine whose connections can go silent: nothing passes, and no error is reported. */
export class SilentLines {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  private constructor(port: number) {
    this.#server = createServer((near) => {
      const far = connect(port, '127.0.0.1');
      for (const socket of [near, far]) {
        this.#sockets.add(socket);
        socket.on('error', () => {});
      }
      near.pipe(far);
      far.pipe(near);
    });
  }

  static async to(port: number): Promise<SilentLines> {
    const lines = new SilentLines(port);
    lines.#server.listen(0, '127.0.0.1');
    await once(lines.#server, 'listening');
    return lines;
  }

  get port(): number {
    const address = this.#server.address();
    return typeof address === 'object' && address ? address.port : 0;
  }

  /** Makes all connections silent that there are; those that are made later work. */
  silence(): void {
    for (const socket of this.#sockets) socket.unpipe().pause();
  }

  close(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}
