import { createClient, ErrorReply, MultiErrorReply } from '@redis/client';
import { second } from '../../base/clock.ts';
import type { StreamedEvent, StreamName } from '../envelope.ts';
import type { Delivery, SinkFailure } from '../relay/sink.ts';
import type { BrokerAddress } from './broker-address.ts';
import { type BrokerConnection, brokerConnection, inTime, responseMsMax, textOf } from './broker-connection.ts';
import { type BrokerMessage, brokerMessage, type MessageForm } from './broker-message.ts';

/** Events added in one transaction. */
export const redisBatchMax = 256;
/** A stream keeps about this many events; Redis holds them in memory, some 500 bytes each. */
const streamLengthMax = 1_000_000;
const deliveryMsMax = 10 * second;

function clientFor({ hosts, isTls, username, password, database }: BrokerAddress, ca: string | undefined) {
  const [place] = hosts;
  const { host = '', port = 0 } = place ?? {};
  const socket = { host, port, connectTimeout: responseMsMax, reconnectStrategy: false } as const;
  return createClient({
    socket: isTls ? { ...socket, tls: true, ...(ca === undefined ? {} : { ca }) } : socket,
    ...(username === null ? {} : { username }),
    ...(password === null ? {} : { password: password.expose() }),
    database,
    RESP: 2,
    disableClientInfo: true,
    disableOfflineQueue: true,
    maintNotifications: 'disabled',
  });
}

type RedisConnection = ReturnType<typeof clientFor>;

/**
 * Opens the line to a Redis server, which connects when it is taken.
 * @param ca an authority instead of those that Node.js trusts, in PEM
 */
export function redisConnection(address: BrokerAddress, ca?: string): BrokerConnection<RedisConnection> {
  return brokerConnection({
    connect: async () => {
      const client = clientFor(address, ca);
      // Without a listener the error would be thrown; commands that fail report it.
      client.on('error', () => {});
      try {
        await inTime(client.connect());
        return client;
      } catch (error) {
        client.destroy();
        throw error;
      }
    },
    isAlive: (client) => client.isReady,
    end: (client) => client.destroy(),
  });
}

/** Dependencies of a delivery to Redis. */
export interface RedisParts {
  readonly connection: BrokerConnection<RedisConnection>;
  readonly stream: StreamName;
  readonly form: () => MessageForm;
}

const tooSlow: SinkFailure = { kind: 'unavailable', reason: 'the broker takes too long' };

/** Returns the reply of Redis; for a transaction, the reply to the first command that failed. */
function replyOf(error: unknown): unknown {
  return error instanceof MultiErrorReply ? (error.replies.find((reply) => reply instanceof Error) ?? error) : error;
}

/**
 * Returns whether Redis rejected a value because of its size. Its other errors are never about a single event: all have
 * the same form, so that an error for one is an error for all.
 */
function isTooLarge(error: unknown): boolean {
  return error instanceof ErrorReply && /Protocol error|too large|maximum allowed size/i.test(error.message);
}

/** Returns whether Redis responded and the connection is usable: errors about the server or the login end it. */
function isResponse(error: unknown): boolean {
  return error instanceof ErrorReply && !/^(READONLY|LOADING|MASTERDOWN|NOAUTH|ERR Protocol)/.test(error.message);
}

/**
 * Adds events to a stream of Redis. A batch is one transaction: all of it arrives, or nothing. When the outcome is
 * unknown it is added again, so that a stream may contain events twice, and then in the same order.
 */
export class RedisPublisher {
  readonly #parts: RedisParts;

  constructor(parts: RedisParts) {
    this.#parts = parts;
  }

  /** Delivers as a sink does. Never throws. */
  async deliver(events: readonly StreamedEvent[]): Promise<Delivery> {
    const form = this.#parts.form();
    const messages = events.map((event) => brokerMessage(event, form));
    const error = await this.#add(messages);
    if (error === null) return { delivered: messages.length, failure: null };
    if (!isTooLarge(error)) return { delivered: 0, failure: { kind: 'unavailable', reason: textOf(error) } };
    if (messages.length === 1) return { delivered: 0, failure: { kind: 'refused', reason: textOf(error) } };
    return this.#deliverSingly(messages);
  }

  /** The error for a batch does not show which of its events is too large. */
  async #deliverSingly(messages: readonly BrokerMessage[]): Promise<Delivery> {
    const untilMs = performance.now() + deliveryMsMax;
    for (const [delivered, message] of messages.entries()) {
      if (performance.now() > untilMs) return { delivered, failure: tooSlow };
      const error = await this.#add([message]);
      const kind = isTooLarge(error) ? 'refused' : 'unavailable';
      if (error !== null) return { delivered, failure: { kind, reason: textOf(error) } };
    }
    return { delivered: messages.length, failure: null };
  }

  /** Adds messages in one transaction; returns the reason why they may not have arrived, and `null` when they have. */
  async #add(messages: readonly BrokerMessage[]): Promise<unknown> {
    const { connection: broker, stream } = this.#parts;
    let connection: RedisConnection | null = null;
    try {
      connection = await broker.take();
      const transaction = connection.multi();
      for (const { key, value, headers } of messages) {
        const entry = { key, value, headers: JSON.stringify(headers) };
        transaction.xAdd(stream, '*', entry, {
          TRIM: { strategy: 'MAXLEN', strategyModifier: '~', threshold: streamLengthMax },
        });
      }
      await inTime(transaction.exec());
      return null;
    } catch (error) {
      const reply = replyOf(error);
      if (connection && !isResponse(reply)) broker.drop(connection);
      return reply;
    }
  }
}
