import { once } from 'node:events';
import { connect as connectTo } from 'node:net';
import { JetStreamApiError, type JetStreamClient, jetstream } from '@nats-io/jetstream';
import {
  errors,
  type NatsConnection,
  NatsConnectionImpl,
  type NodeConnectionOptions,
  nanos,
  setTransportFactory,
} from '@nats-io/transport-node';
import { NodeTransport, nodeResolveHost } from '@nats-io/transport-node/lib/node_transport.js';
import { day, minute, second } from '../../base/clock.ts';
import type { StreamName } from '../envelope.ts';
import type { BrokerAddress, BrokerHost } from './broker-address.ts';
import { type BrokerConnection, brokerConnection, inTime, responseMsMax } from './broker-connection.ts';

/** Milliseconds in which the server detects a message that is published twice. */
const duplicateMs = 5 * minute;
const codes = { nameInUse: 10058, headersTooLarge: 10097, messageTooLarge: 10054, wrongLastId: 10070 };

/** A connection, with the clients that use it. */
export interface NatsClient {
  readonly nats: NatsConnection;
  readonly jetstream: JetStreamClient;
  /** The streams that were there when it was looked for them. */
  readonly seen: Set<StreamName>;
}

function codeOf(error: unknown): number {
  return error instanceof JetStreamApiError ? error.code : 0;
}

function causeOf(error: unknown): unknown {
  return error instanceof Error ? error.cause : undefined;
}

/** The server or the stream takes no message of this size, now or later. */
export function isTooLarge(error: unknown): boolean {
  const code = codeOf(error);
  const isTooLargeHere = error instanceof errors.InvalidArgumentError && error.message.includes('max_payload');
  return code === codes.messageTooLarge || code === codes.headersTooLarge || isTooLargeHere;
}

/** The message before it is not the last of the stream. */
export function isOutOfTurn(error: unknown): boolean {
  return codeOf(error) === codes.wrongLastId;
}

/** No stream takes the subject. */
export function hasNoResponders(error: unknown): boolean {
  const cause = causeOf(error);
  return cause instanceof errors.RequestError && cause.isNoResponders();
}

/** Returns whether JetStream itself responded, or nothing takes the subject: the connection works. */
export function isResponse(error: unknown): boolean {
  return codeOf(error) !== 0 || hasNoResponders(error);
}

function loginOf({ username, password }: BrokerAddress): Pick<NodeConnectionOptions, 'user' | 'pass' | 'token'> {
  if (password === null) return {};
  return username === null ? { token: password.expose() } : { user: username, pass: password.expose() };
}

/** Waits for the words that a server greets with; throws when there are none in time. */
async function greet({ host, port }: BrokerHost): Promise<void> {
  const socket = connectTo({ host, port });
  try {
    await inTime(once(socket, 'data'));
  } finally {
    socket.destroy();
  }
}

/**
 * The servers that are well enough to be connected to: the library would wait for one after the other. Throws why there
 * is none.
 */
async function selectHealthy(hosts: readonly BrokerHost[]): Promise<readonly BrokerHost[]> {
  const greetings = await Promise.allSettled(hosts.map(greet));
  const well = hosts.filter((_, place) => greetings[place]?.status === 'fulfilled');
  const failed = greetings.find((one) => one.status === 'rejected');
  if (well.length === 0) throw failed?.reason;
  return well;
}

/** Lets go of a socket also where the server never greeted, which the library's own does not. */
class Transport extends NodeTransport {
  override async close(error?: Error): Promise<void> {
    await super.close(error);
    this.discard();
  }
}

/** Connects to one server, whose name its certificate is checked for. */
async function openTo({ host, port }: BrokerHost, options: NodeConnectionOptions): Promise<NatsClient> {
  // The library tells TLS the name but no address, and TLS would then expect a certificate for localhost.
  const { tls = null, timeout = responseMsMax } = options;
  const checked = tls === null ? {} : { tls: { ...tls, host } };
  const servers = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  setTransportFactory({ factory: () => new Transport(), dnsResolveFn: nodeResolveHost });
  const connecting = NatsConnectionImpl.connect({ ...options, ...checked, servers });
  try {
    const nats = await inTime(connecting, timeout);
    return { nats, jetstream: jetstream(nats, { timeout: responseMsMax }), seen: new Set() };
  } catch (error) {
    connecting.then(
      (late) => late.close(),
      () => {},
    );
    throw error;
  }
}

async function open(address: BrokerAddress, ca: string | undefined): Promise<NatsClient> {
  const hosts = await selectHealthy(address.hosts);
  const options: NodeConnectionOptions = {
    name: 'latchkey',
    ...(address.isTls ? { tls: ca === undefined ? {} : { ca } } : {}),
    ...loginOf(address),
    timeout: Math.max(second, responseMsMax / hosts.length),
    reconnect: false,
    noAsyncTraces: true,
  };
  let failure: unknown;
  for (const host of hosts) {
    try {
      return await openTo(host, options);
    } catch (error) {
      failure ??= error;
    }
  }
  throw failure;
}

/**
 * Opens the line to a NATS server, which connects when it is taken.
 * @param ca an authority instead of those that Node.js trusts, in PEM
 */
export function natsConnection(address: BrokerAddress, ca?: string): BrokerConnection<NatsClient> {
  return brokerConnection({
    connect: () => open(address, ca),
    isAlive: ({ nats }) => !nats.isClosed(),
    end: ({ nats }) => {
      nats.close().catch(() => {});
    },
  });
}

function isForbidden(error: unknown): boolean {
  return [error, causeOf(error)].some((one) => one instanceof errors.PermissionViolationError);
}

/** The subjects of a stream: one for each organization. */
export function subjectOf(stream: StreamName, key: string): string {
  return `${stream}.${key === '' ? 'system' : key}`;
}

/**
 * Creates a stream unless one takes its subjects already, whatever its name: a stream that an operator created is left
 * unchanged. Where this service may not query streams, the operator creates them.
 * @returns whether it was created
 */
export async function ensureStream(
  { jetstream: client }: NatsClient,
  stream: StreamName,
  retentionDays: number,
): Promise<boolean> {
  try {
    const { streams } = await client.jetstreamManager(false);
    const subjects = `${stream}.>`;
    const names = await streams.names(subjects).next();
    if (names.length > 0) return false;
    await streams.add({
      name: stream,
      subjects: [subjects],
      description: 'Made by Latchkey',
      max_age: nanos(retentionDays * day),
      duplicate_window: nanos(duplicateMs),
    });
    return true;
  } catch (error) {
    if (isForbidden(error) || codeOf(error) === codes.nameInUse) return false;
    throw error;
  }
}
