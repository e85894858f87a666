import { once } from 'node:events';
import { connect, createServer } from 'node:net';

const host = '127.0.0.1';

/** Stands between a service and its PostgreSQL, and is what a network does on a bad day. */
export class Proxy {
  /** How often the answer of a commit was cut off. */
  cutCommits = 0;
  #pairs = new Set();
  #isSilent = false;
  #cutsCommits = false;

  static async begin(port) {
    const proxy = new Proxy();
    proxy.target = port;
    proxy.server = createServer((client) => proxy.#join(client)).listen(0, host);
    await once(proxy.server, 'listening');
    return proxy;
  }

  get address() {
    return `${host}:${this.server.address().port}`;
  }

  #join(client) {
    const server = connect(this.target, host);
    const pair = { client, server, isCommitting: false };
    this.#pairs.add(pair);
    const close = () => {
      this.#pairs.delete(pair);
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) {
      socket.setNoDelay(true);
      socket.on('error', close);
      // While it is silent, nobody learns that the other side has gone.
      socket.on('close', () => (this.#isSilent ? undefined : close()));
    }
    client.on('data', (chunk) => {
      if (this.#cutsCommits && chunk.includes('commit\0')) pair.isCommitting = true;
      server.write(chunk);
    });
    server.on('data', (chunk) => {
      if (!pair.isCommitting) return client.write(chunk);
      this.cutCommits += 1;
      return close();
    });
    if (this.#isSilent) this.#hush(pair);
  }

  #hush({ client, server }) {
    client.pause();
    server.pause();
  }

  /** Cuts every connection. */
  cut() {
    for (const { client, server } of this.#pairs) {
      client.resetAndDestroy();
      server.destroy();
    }
    this.#pairs.clear();
  }

  /** Nothing is passed on from now on, and nothing is closed. */
  hush() {
    this.#isSilent = true;
    for (const pair of this.#pairs) this.#hush(pair);
  }

  /** Everything that waited is passed on. */
  speak() {
    this.#isSilent = false;
    for (const { client, server } of this.#pairs) {
      client.resume();
      server.resume();
      if (client.destroyed) server.destroy();
      if (server.destroyed) client.destroy();
    }
  }

  /** Whether each commit is carried out, and its answer cut off. */
  cutCommitAnswers(isOn) {
    this.#cutsCommits = isOn;
  }

  /** Where connections go to from now on. */
  turnTo(port) {
    this.target = port;
  }

  async close() {
    this.speak();
    this.cut();
    await new Promise((resolve) => {
      this.server.close(resolve);
    });
  }
}
