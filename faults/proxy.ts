import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';

const host = '127.0.0.1';

interface Pair {
  readonly client: Socket;
  readonly server: Socket;
  isCommitting: boolean;
}

/** Stands between a service and its PostgreSQL, and is what a network does on a bad day. */
export class DatabaseProxy {
  /** How often the answer of a commit was cut off. */
  cutCommits = 0;
  readonly #pairs = new Set<Pair>();
  #isSilent = false;
  #cutsCommits = false;

  #target: number;
  readonly #server: Server;

  private constructor(port: number) {
    this.#target = port;
    this.#server = createServer((client) => this.#join(client)).listen(0, host);
  }

  static async begin(port: number): Promise<DatabaseProxy> {
    const proxy = new DatabaseProxy(port);
    await once(proxy.#server, 'listening');
    return proxy;
  }

  get address(): string {
    const address = this.#server.address();
    return `${host}:${typeof address === 'object' ? address?.port : address}`;
  }

  #join(client: Socket): void {
    const server = connect(this.#target, host);
    const pair: Pair = { client, server, isCommitting: false };
    this.#pairs.add(pair);
    const close = () => {
      this.#pairs.delete(pair);
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      socket.setNoDelay(true);
      socket.on('error', close);
      // While it is silent, neither side learns that the other has gone.
      socket.on('close', () => (this.#isSilent ? undefined : close()));
    }
    client.on('data', (chunk: Buffer) => {
      if (this.#cutsCommits && chunk.includes('commit\0')) pair.isCommitting = true;
      server.write(chunk);
    });
    server.on('data', (chunk: Buffer) => {
      if (!pair.isCommitting) {
        client.write(chunk);
        return;
      }
      this.cutCommits += 1;
      close();
    });
    if (this.#isSilent) this.#hush(pair);
  }

  #hush({ client, server }: Pair): void {
    client.pause();
    server.pause();
  }

  /** Cuts every connection. */
  cut(): void {
    for (const { client, server } of this.#pairs) {
      client.resetAndDestroy();
      server.destroy();
    }
    this.#pairs.clear();
  }

  /** Nothing is passed on from now on, and nothing is closed. */
  hush(): void {
    this.#isSilent = true;
    for (const pair of this.#pairs) this.#hush(pair);
  }

  /** Everything that waited is passed on. */
  speak(): void {
    this.#isSilent = false;
    for (const { client, server } of this.#pairs) {
      client.resume();
      server.resume();
      if (client.destroyed) server.destroy();
      if (server.destroyed) client.destroy();
    }
  }

  /** Whether each commit is carried out, and its answer cut off. */
  cutCommitAnswers(isOn: boolean): void {
    this.#cutsCommits = isOn;
  }

  /** Where connections go to from now on. */
  turnTo(port: number): void {
    this.#target = port;
  }

  async close(): Promise<void> {
    this.speak();
    this.cut();
    await new Promise((resolve) => {
      this.#server.close(resolve);
    });
  }
}
