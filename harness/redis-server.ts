import { createClient } from '@redis/client';
import { type BrokerKind, BrokerProgram, certificate } from './broker-program.ts';

/** What may be other than usual. */
interface RedisOptions {
  readonly password?: string;
  /** Speaks TLS only, with the certificate of the tests. */
  readonly isTls?: boolean;
  /** Further lines of the configuration file. */
  readonly lines?: readonly string[];
  /** 0 unless said otherwise. */
  readonly database?: number;
}

/** An entry of a stream. */
export interface StoredEntry {
  readonly id: string;
  readonly key: string;
  readonly value: string;
  readonly headers: Readonly<Record<string, string>>;
}

function clientOf({ password, database, isTls }: RedisOptions, port: number) {
  const socket = { host: '127.0.0.1', port, reconnectStrategy: false } as const;
  return createClient({
    socket: isTls ? { ...socket, tls: true, ca: certificate.text } : socket,
    ...(password === undefined ? {} : { password }),
    database: database ?? 0,
    RESP: 2,
  }).on('error', () => {});
}

/** A connection to it. */
type RedisClient = ReturnType<typeof clientOf>;

function listening({ isTls }: RedisOptions, port: number): readonly string[] {
  if (!isTls) return [`port ${port}`];
  const files = [`tls-cert-file ${certificate.file}`, `tls-key-file ${certificate.keyFile}`];
  return ['port 0', `tls-port ${port}`, 'tls-auth-clients no', `tls-ca-cert-file ${certificate.file}`, ...files];
}

function kind(options: RedisOptions): BrokerKind {
  const { password, lines = [] } = options;
  return {
    program: 'redis-server',
    configuration: ({ port, dataDir }) => {
      const own = [
        ...listening(options, port),
        'bind 127.0.0.1',
        `dir ${dataDir}`,
        'appendonly yes',
        'appendfsync always',
        'save ""',
      ];
      return [...own, ...(password === undefined ? [] : [`requirepass ${password}`]), ...lines].join('\n');
    },
    arguments: (file) => [file],
    ask: async (port) => {
      const client = clientOf(options, port);
      try {
        await client.connect();
        await client.ping();
      } finally {
        client.destroy();
      }
    },
  };
}

/** A real Redis server that writes everything to disk before it answers. */
export class RedisServer extends BrokerProgram {
  readonly #options: RedisOptions;

  protected constructor(options: RedisOptions, port: number) {
    super(kind(options), port);
    this.#options = options;
  }

  static async begin(options: RedisOptions = {}): Promise<RedisServer> {
    return BrokerProgram.launch((port) => new RedisServer(options, port));
  }

  /** Where it is, with who signs in. */
  get url(): string {
    const { password, database = 0 } = this.#options;
    const login = password === undefined ? '' : `:${encodeURIComponent(password)}@`;
    return `${this.#options.isTls ? 'rediss' : 'redis'}://${login}127.0.0.1:${this.port}/${database}`;
  }

  /** Opens a connection, to be destroyed by the caller. */
  async connect(): Promise<RedisClient> {
    const client = clientOf(this.#options, this.port);
    try {
      await client.connect();
      return client;
    } catch (error) {
      client.destroy();
      throw error;
    }
  }

  /** Does something over a connection of its own. */
  async with<T>(work: (client: RedisClient) => Promise<T>): Promise<T> {
    const client = await this.connect();
    try {
      return await work(client);
    } finally {
      client.destroy();
    }
  }

  /** All that a stream holds, in its order. */
  async entries(stream: string): Promise<readonly StoredEntry[]> {
    return this.with(async (client) => {
      const found = await client.xRange(stream, '-', '+');
      return (found ?? []).map(({ id, message }) => ({
        id,
        key: message['key'] ?? '',
        value: message['value'] ?? '',
        headers: JSON.parse(message['headers'] ?? '{}'),
      }));
    });
  }
}
