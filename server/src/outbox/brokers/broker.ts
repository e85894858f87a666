import type { Logger } from 'pino';
import type { Secret } from '../../base/secret.ts';
import type { StreamedEvent, StreamName } from '../envelope.ts';
import type { Delivery, Sink } from '../relay/sink.ts';
import { type BrokerAddress, readBrokerAddress } from './broker-address.ts';
import { type BrokerConnection, printable, textOf } from './broker-connection.ts';
import type { MessageForm } from './broker-message.ts';
import { natsConnection } from './nats-connection.ts';
import { NatsPublisher, natsBatchMax } from './nats-sink.ts';
import { RedisPublisher, redisBatchMax, redisConnection } from './redis-sink.ts';

/** Options for opening a broker. */
export interface BrokerParts {
  /** `nats://`, `tls://`, `redis://` or `rediss://`, credentials included, as the configuration allows it. */
  readonly url: Secret;
  readonly log: Logger;
  /** The format of messages, read for each batch since a reload may change it. Rules: EVENT-21, CONFIG-30. */
  readonly form: () => MessageForm;
  /** For a stream that has to be made at NATS: how long it keeps messages, in days. Rule: EVENT-20. */
  readonly retentionDays: () => number;
  /** An authority for certificates instead of those that Node.js trusts, in PEM; for tests. */
  readonly ca?: string;
}

/** A broker, reached over one connection. Rule: EVENT-16. */
export interface Broker {
  /** A sink for a stream; there should be one for each. Closing it leaves the connection to the others. */
  sinkTo(stream: StreamName): Sink;
  /** Ends the connection; deliveries under way fail. */
  close(): Promise<void>;
}

interface Publisher {
  deliver(events: readonly StreamedEvent[]): Promise<Delivery>;
}

interface Opened {
  readonly connection: Pick<BrokerConnection<unknown>, 'close'>;
  readonly batchMax: number;
  publisherTo(stream: StreamName): Publisher;
}

function open(address: BrokerAddress, parts: BrokerParts): Opened {
  if (address.kind === 'nats') {
    const connection = natsConnection(address, parts.ca);
    return {
      connection,
      batchMax: natsBatchMax,
      publisherTo: (stream) => new NatsPublisher({ ...parts, connection, stream }),
    };
  }
  const connection = redisConnection(address, parts.ca);
  return {
    connection,
    batchMax: redisBatchMax,
    publisherTo: (stream) => new RedisPublisher({ ...parts, connection, stream }),
  };
}

/**
 * Connects to the broker at an address, makes and sends nothing there, and hangs up. Throws an error that says on one
 * line, without a secret, why that is impossible; after some seconds at the latest.
 */
export async function checkBroker({ url, ca }: Pick<BrokerParts, 'url' | 'ca'>): Promise<void> {
  const address = readBrokerAddress(url.expose());
  if (!address) throw new TypeError('this is no address of a broker');
  const connection = address.kind === 'nats' ? natsConnection(address, ca) : redisConnection(address, ca);
  try {
    await connection.take();
  } catch (error) {
    // The driver's error may contain the address with the credentials.
    // oxlint-disable-next-line eslint/preserve-caught-error -- its text is passed on, without secrets
    throw new Error(printable(textOf(error), secretsOf(url, address)));
  } finally {
    connection.close();
  }
}

/** Returns the secrets of an address, the longest first: the password in each form in which it is written or sent. */
function secretsOf(url: Secret, { password }: BrokerAddress): readonly string[] {
  const word = password?.expose() ?? '';
  const [, written = ''] = /^\w+:\/\/(.*)@/s.exec(url.expose()) ?? [];
  const forms = [written, written.slice(written.indexOf(':') + 1), word, JSON.stringify(word).slice(1, -1)];
  return forms.filter((form) => form !== '').sort((a, b) => b.length - a.length);
}

/** Returns a sink that never throws and never discloses secrets. */
function sinkOver(
  publisher: Publisher,
  { batchMax, secrets }: { readonly batchMax: number; readonly secrets: readonly string[] },
): Sink {
  const closed: Delivery = { delivered: 0, failure: { kind: 'unavailable', reason: 'the connection was closed' } };
  const waiting = new Set<() => void>();
  let isClosed = false;

  /** By hand: a race with a promise that settles at the end only would keep something of each delivery until then. */
  function unlessClosed(delivery: Promise<Delivery>): Promise<Delivery> {
    return new Promise((resolve, reject) => {
      const end = () => resolve(closed);
      waiting.add(end);
      delivery.then(resolve, reject).finally(() => waiting.delete(end));
    });
  }

  return {
    batchMax,
    deliver: async (events) => {
      if (isClosed) return closed;
      const { delivered, failure } = await unlessClosed(publisher.deliver(events));
      return { delivered, failure: failure && { ...failure, reason: printable(failure.reason, secrets) } };
    },
    close: async () => {
      isClosed = true;
      for (const end of waiting) end();
    },
  };
}

/**
 * Opens the broker at an address. It need not be up: connecting happens with the first delivery, and again after a
 * loss. A delivery takes at most 30 seconds. Throws TypeError for an address that is none of a broker. Rule: EVENT-16.
 */
export function openBroker(parts: BrokerParts): Broker {
  const address = readBrokerAddress(parts.url.expose());
  if (!address) throw new TypeError('this is no address of a broker');
  const { connection, batchMax, publisherTo } = open(address, parts);
  const secrets = secretsOf(parts.url, address);
  return {
    sinkTo: (stream) => sinkOver(publisherTo(stream), { batchMax, secrets }),
    close: async () => connection.close(),
  };
}
