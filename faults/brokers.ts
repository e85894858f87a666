import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { connect as connectTo } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { DeliverPolicy, jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { createClient } from '@redis/client';
import { end, freePort, removeFolder, signal, start, temporaryFolder } from './processes.ts';

const startMsMax = 20_000;

/** The programs that suites start, and the Debian packages that hold them. */
export const debianPackages = [
  { command: 'nats-server', package: 'nats-server' },
  { command: 'redis-server', package: 'redis-server' },
];

/** A real broker as a process of its own. */
class Broker {
  child = null;

  constructor(port) {
    this.port = port;
    this.folder = temporaryFolder();
  }

  get dataDir() {
    return join(this.folder, 'data');
  }

  /** Starts it, on the same port each time, and waits until it answers. */
  async start() {
    const file = join(this.folder, 'broker.conf');
    mkdirSync(this.dataDir, { recursive: true });
    writeFileSync(file, this.configuration());
    this.child = start(this.program, this.argumentsFor(file), { cwd: this.folder });
    const untilMs = performance.now() + startMsMax;
    for (;;) {
      try {
        return await this.greet();
      } catch (error) {
        if (performance.now() > untilMs)
          throw new Error(`${this.program} did not start: ${this.child.said()}`, { cause: error });
        await sleep(20);
      }
    }
  }

  async stop() {
    await end(this.child);
  }

  async kill() {
    await end(this.child, 'SIGKILL');
  }

  /** It answers nothing any more, and keeps its connections. */
  pause() {
    signal(this.child, 'SIGSTOP');
  }

  /** It goes on with whatever arrived meanwhile. */
  resume() {
    signal(this.child, 'SIGCONT');
  }

  /** Forgets all that it stored; only while it is ended. */
  empty() {
    rmSync(this.dataDir, { recursive: true, force: true });
  }

  async close() {
    await this.kill();
    removeFolder(this.folder);
  }
}

/** NATS with JetStream. */
export class Nats extends Broker {
  name = 'NATS';
  program = 'nats-server';

  get url() {
    return `nats://127.0.0.1:${this.port}`;
  }

  configuration() {
    const store = `jetstream { store_dir: ${JSON.stringify(this.dataDir)}, max_file: 2000000000 }`;
    return [`listen: "127.0.0.1:${this.port}"`, store].join('\n');
  }

  argumentsFor(file) {
    return ['-c', file];
  }

  async greet() {
    const socket = connectTo(this.port, '127.0.0.1');
    try {
      await once(socket, 'data');
    } finally {
      socket.destroy();
    }
  }

  async #with(work) {
    const connection = await connect({ servers: `127.0.0.1:${this.port}`, reconnect: false });
    try {
      return await work(await jetstreamManager(connection, { checkAPI: false }), connection);
    } finally {
      await connection.close();
    }
  }

  /** All messages of a stream in its order: `{ id, key, value }`; none where there is no such stream. */
  async messages(stream) {
    return await this.#with(async (manager) => {
      const state = await manager.streams.info(stream).then(
        (info) => info.state,
        () => null,
      );
      if (!state || state.messages === 0) return [];
      const consumer = await manager.jetstream().consumers.get(stream, { deliver_policy: DeliverPolicy.All });
      const found = [];
      const incoming = await consumer.consume({ max_messages: 1_000 });
      for await (const message of incoming) {
        const id = message.headers.get('Nats-Msg-Id');
        found.push({ id, key: message.subject.slice(stream.length + 1), value: message.string() });
        if (message.seq >= state.last_seq) break;
      }
      await incoming.close();
      return found;
    });
  }

  /** The last message of a stream; null where there is none. */
  async last(stream) {
    return await this.#with(async (manager) => {
      const state = await manager.streams.info(stream).then(
        (info) => info.state,
        () => ({ messages: 0 }),
      );
      if (state.messages === 0) return null;
      const message = await manager.streams.getMessage(stream, { seq: state.last_seq });
      return { value: message.string() };
    });
  }

  /** Calls `act` with the number of messages that have arrived since; answers what ends it. */
  async watch(stream, act) {
    const connection = await connect({ servers: `127.0.0.1:${this.port}`, reconnect: false });
    let count = 0;
    connection.subscribe(`${stream}.>`, {
      callback: () => {
        count += 1;
        act(count);
      },
    });
    await connection.flush();
    return () => connection.close();
  }

  /** Leaves streams room for a few messages more; answers what gives them room again. */
  async narrow(streams) {
    await this.#with(async (manager) => {
      for (const name of streams) {
        const { state } = await manager.streams.info(name);
        await manager.streams.update(name, { max_bytes: state.bytes + 3_000, discard: 'new' });
      }
    });
    return () =>
      this.#with(async (manager) => {
        for (const name of streams) await manager.streams.update(name, { max_bytes: -1 });
      });
  }
}

/** Redis that writes everything to disk before it answers. */
export class Redis extends Broker {
  name = 'Redis';
  program = 'redis-server';

  get url() {
    return `redis://127.0.0.1:${this.port}/0`;
  }

  configuration() {
    const own = [`port ${this.port}`, 'bind 127.0.0.1', `dir ${this.dataDir}`, 'save ""'];
    return [...own, 'appendonly yes', 'appendfsync always'].join('\n');
  }

  argumentsFor(file) {
    return [file];
  }

  async greet() {
    await this.#with((client) => client.ping());
  }

  async #with(work) {
    const client = await this.#connect();
    try {
      return await work(client);
    } finally {
      client.destroy();
    }
  }

  async #connect() {
    const client = createClient({ socket: { host: '127.0.0.1', port: this.port, reconnectStrategy: false }, RESP: 2 });
    client.on('error', () => {});
    try {
      await client.connect();
      return client;
    } catch (error) {
      client.destroy();
      throw error;
    }
  }

  async messages(stream) {
    const entries = await this.#with((client) => client.xRange(stream, '-', '+'));
    return entries.map(({ message: { key, value, headers } }) => ({ id: JSON.parse(headers)['Event-Id'], key, value }));
  }

  async last(stream) {
    const [entry] = await this.#with((client) => client.xRevRange(stream, '+', '-', { COUNT: 1 }));
    return entry ? { value: entry.message.value } : null;
  }

  async watch(stream, act) {
    const client = await this.#connect();
    let isOver = false;
    let count = 0;
    const reading = (async () => {
      const last = await this.#with((other) => other.xRevRange(stream, '+', '-', { COUNT: 1 }));
      let id = last[0]?.id ?? '0';
      while (!isOver) {
        const found = await client.xRead({ key: stream, id }, { BLOCK: 0 });
        for (const entry of found?.[0]?.messages ?? []) {
          id = entry.id;
          count += 1;
          act(count);
        }
      }
    })();
    // Ends with its connection.
    reading.catch(() => {});
    return async () => {
      isOver = true;
      client.destroy();
    };
  }

  async narrow() {
    await this.#with(async (client) => {
      const used = Number(/used_memory:(\d+)/.exec(await client.info('memory'))[1]);
      await client.configSet({ 'maxmemory-policy': 'noeviction', maxmemory: String(used + 10_000) });
    });
    return () => this.#with((client) => client.configSet('maxmemory', '0'));
  }
}

/** Starts a broker of a kind. */
export async function startBroker(Kind) {
  const broker = new Kind(await freePort());
  await broker.start();
  return broker;
}
