import { DeliverPolicy } from '@nats-io/jetstream';
import type { BrokerProgram } from '../harness/broker-program.ts';
import { NatsServer } from '../harness/nats-server.ts';
import { RedisServer } from '../harness/redis-server.ts';

/** The programs that suites start, and the Debian packages that hold them. */
export const debianPackages = [
  { command: 'nats-server', package: 'nats-server' },
  { command: 'redis-server', package: 'redis-server' },
];

/** A message as a broker holds it. */
export interface Message {
  readonly id: string;
  readonly key: string;
  readonly value: string;
}

/** A broker with what fault injection asks of it. */
export interface Broker extends BrokerProgram {
  readonly name: string;
  readonly url: string;
  /** All messages of a stream in its order; none where there is no such stream. */
  stored(stream: string): Promise<readonly Message[]>;
  /** The value of the last message of a stream; null where there is none. */
  last(stream: string): Promise<string | null>;
  /** Calls `act` with the number of messages that have arrived since; returns what ends it. */
  watch(stream: string, act: (count: number) => void): Promise<() => Promise<void>>;
  /** Leaves streams room for a few messages more; returns what gives them room again. */
  narrow(streams: readonly string[]): Promise<() => Promise<void>>;
}

/** A kind of broker, which can be started. */
export interface BrokerClass {
  readonly title: string;
  begin(): Promise<Broker>;
}

/** NATS with JetStream. */
export class Nats extends NatsServer implements Broker {
  static readonly title: string = 'NATS';
  readonly name = Nats.title;

  static override async begin(): Promise<Nats> {
    return NatsServer.launch((port) => new Nats({}, port));
  }

  async stored(stream: string): Promise<readonly Message[]> {
    return this.with(async (manager) => {
      const state = await manager.streams.info(stream).then(
        (info) => info.state,
        () => null,
      );
      if (!state || state.messages === 0) return [];
      const consumer = await manager.jetstream().consumers.get(stream, { deliver_policy: DeliverPolicy.All });
      const found: Message[] = [];
      const incoming = await consumer.consume({ max_messages: 1_000 });
      for await (const message of incoming) {
        const id = message.headers?.get('Nats-Msg-Id') ?? '';
        found.push({ id, key: message.subject.slice(stream.length + 1), value: message.string() });
        if (message.seq >= state.last_seq) break;
      }
      await incoming.close();
      return found;
    });
  }

  async last(stream: string): Promise<string | null> {
    return this.with(async ({ streams }) => {
      const seq = await streams.info(stream).then(
        ({ state }) => (state.messages === 0 ? 0 : state.last_seq),
        () => 0,
      );
      return seq === 0 ? null : ((await streams.getMessage(stream, { seq }))?.string() ?? null);
    });
  }

  async watch(stream: string, act: (count: number) => void): Promise<() => Promise<void>> {
    const connection = await this.connect();
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

  async narrow(names: readonly string[]): Promise<() => Promise<void>> {
    await this.with(async ({ streams }) => {
      for (const name of names) {
        const { state } = await streams.info(name);
        await streams.update(name, { max_bytes: state.bytes + 3_000, discard: 'new' });
      }
    });
    return () =>
      this.with(async ({ streams }) => {
        for (const name of names) await streams.update(name, { max_bytes: -1 });
      });
  }
}

/** Redis that writes everything to disk before it answers. */
export class Redis extends RedisServer implements Broker {
  static readonly title: string = 'Redis';
  readonly name = Redis.title;

  static override async begin(): Promise<Redis> {
    return RedisServer.launch((port) => new Redis({}, port));
  }

  async stored(stream: string): Promise<readonly Message[]> {
    const entries = await this.entries(stream);
    return entries.map(({ key, value, headers }) => ({ id: headers['Event-Id'] ?? '', key, value }));
  }

  async last(stream: string): Promise<string | null> {
    const found = await this.with((client) => client.xRevRange(stream, '+', '-', { COUNT: 1 }));
    return found?.[0]?.message['value'] ?? null;
  }

  async watch(stream: string, act: (count: number) => void): Promise<() => Promise<void>> {
    const client = await this.connect();
    const over = new AbortController();
    let count = 0;
    const reading = (async () => {
      const last = await this.with((other) => other.xRevRange(stream, '+', '-', { COUNT: 1 }));
      let id = last?.[0]?.id ?? '0';
      while (!over.signal.aborted) {
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
      over.abort();
      client.destroy();
    };
  }

  async narrow(): Promise<() => Promise<void>> {
    await this.with(async (client) => {
      const used = Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1]);
      await client.configSet({ 'maxmemory-policy': 'noeviction', maxmemory: String(used + 10_000) });
    });
    return async () => {
      await this.with((client) => client.configSet('maxmemory', '0'));
    };
  }
}
