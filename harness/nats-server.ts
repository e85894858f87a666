import { once } from 'node:events';
import { connect as connectTo } from 'node:net';
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { type BrokerKind, BrokerProgram, certificate } from './broker-program.ts';

/** What may be other than usual. */
interface NatsOptions {
  readonly user?: string;
  readonly password?: string;
  readonly token?: string;
  /** The rights of the user, in the words of the configuration file. */
  readonly permissions?: string;
  /** Speaks TLS only, with the certificate of the tests. */
  readonly isTls?: boolean;
  /** Of a message. */
  readonly bytesMax?: number;
  /** A command that starts it, such as one that keeps it to a core. */
  readonly wrap?: readonly string[];
}

/** A message as it was stored. */
export interface StoredMessage {
  readonly sequence: number;
  readonly subject: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

function authorization({ user, password, token, permissions }: NatsOptions): string {
  if (token !== undefined) return `authorization { token: ${JSON.stringify(token)} }`;
  if (user === undefined) return '';
  const login = `user: ${JSON.stringify(user)}, password: ${JSON.stringify(password)}`;
  return `authorization { users: [{ ${login}${permissions === undefined ? '' : `, permissions: ${permissions}`} }] }`;
}

function kind(current: () => NatsOptions): BrokerKind {
  return {
    program: 'nats-server',
    get wrap() {
      return current().wrap ?? [];
    },
    configuration: ({ port, dataDir }) => {
      const options = current();
      const { bytesMax } = options;
      return [
        `listen: "127.0.0.1:${port}"`,
        `jetstream { store_dir: ${JSON.stringify(dataDir)}, max_file: 2000000000 }`,
        bytesMax === undefined ? '' : `max_payload: ${bytesMax}`,
        options.isTls
          ? `tls { cert_file: ${JSON.stringify(certificate.file)}, key_file: ${JSON.stringify(certificate.keyFile)} }`
          : '',
        authorization(options),
      ].join('\n');
    },
    arguments: (file) => ['-c', file],
    ask: async (port) => {
      // It greets each connection, once JetStream has found what it stored.
      const socket = connectTo(port, '127.0.0.1');
      try {
        await once(socket, 'data');
      } finally {
        socket.destroy();
      }
    },
  };
}

/** A real NATS server with JetStream. */
export class NatsServer extends BrokerProgram {
  #options: NatsOptions;

  protected constructor(options: NatsOptions, port: number) {
    super(
      kind(() => this.#options),
      port,
    );
    this.#options = options;
  }

  /** Takes other options, for when it is started the next time. */
  configure(options: NatsOptions): void {
    this.#options = options;
  }

  static async begin(options: NatsOptions = {}): Promise<NatsServer> {
    return BrokerProgram.launch((port) => new NatsServer(options, port));
  }

  /** Where it is, with who signs in. */
  get url(): string {
    const { user, password, token } = this.#options;
    const word = encodeURIComponent(token ?? password ?? '');
    const login = user === undefined ? word : `${user}:${word}`;
    return `${this.#options.isTls ? 'tls' : 'nats'}://${login === '' ? '' : `${login}@`}127.0.0.1:${this.port}`;
  }

  /** Opens a connection, to be closed by the caller. */
  async connect(): Promise<NatsConnection> {
    const { user, password, token, isTls } = this.#options;
    return connect({
      servers: `127.0.0.1:${this.port}`,
      ...(isTls ? { tls: { ca: certificate.text } } : {}),
      ...(token === undefined ? {} : { token }),
      ...(user === undefined ? {} : { user, pass: password ?? '' }),
      reconnect: false,
    });
  }

  /** Does something over a connection of its own. */
  async with<T>(work: (streams: JetStreamManager, connection: NatsConnection) => Promise<T>): Promise<T> {
    const connection = await this.connect();
    try {
      return await work(await jetstreamManager(connection, { checkAPI: false }), connection);
    } finally {
      await connection.close();
    }
  }

  /** All that a stream holds, in its order; nothing where there is no such stream. */
  async messages(stream: string): Promise<readonly StoredMessage[]> {
    return this.with(async ({ streams }) => {
      const state = await streams.info(stream).then(
        (info) => info.state,
        () => ({ first_seq: 1, last_seq: 0 }),
      );
      const found: StoredMessage[] = [];
      for (let sequence = Math.max(1, state.first_seq); sequence <= state.last_seq; sequence += 1) {
        const message = await streams.getMessage(stream, { seq: sequence });
        if (!message) continue;
        const headers = Object.fromEntries([...message.header].map(([name, [value = '']]) => [name, value]));
        found.push({ sequence, subject: message.subject, body: message.string(), headers });
      }
      return found;
    });
  }
}
