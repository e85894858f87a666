import { once } from 'node:events';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import { CloudEvent } from 'cloudevents';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { certificate } from '../../../../harness/broker-program.ts';
import { NatsServer } from '../../../../harness/nats-server.ts';
import { RedisServer } from '../../../../harness/redis-server.ts';
import { eventId, openedBroker, orgId, streamed, streamedRange } from '../../../test/support/streamed-events.ts';
import type { EventsFormat } from '../envelope.ts';
import type { Delivery } from '../relay/sink.ts';

interface Stored {
  readonly body: string;
  readonly contentType: string | undefined;
}

const kinds = {
  NATS: async () => {
    const server = await NatsServer.begin({ user: 'ada', password: 'pa55/w@rd:x' });
    const stored = async (): Promise<readonly Stored[]> =>
      (await server.messages('entity-events')).map(({ body, headers }) => ({
        body,
        contentType: headers['Content-Type'],
      }));
    return { server, stored };
  },
  Redis: async () => {
    const server = await RedisServer.begin({ password: 'pa55/w@rd:x' });
    const stored = async (): Promise<readonly Stored[]> =>
      (await server.entries('entity-events')).map(({ value, headers }) => ({
        body: value,
        contentType: headers['Content-Type'],
      }));
    return { server, stored };
  },
};

describe.each(['NATS', 'Redis'] as const)('a broker: %s', (kind) => {
  let started: Awaited<ReturnType<(typeof kinds)['NATS' | 'Redis']>>;
  beforeAll(async () => {
    started = await kinds[kind]();
  });
  afterAll(() => started.server.close());

  it('need not be there when it is opened, and is found once it is (EVENT-16, EVENT-17)', async () => {
    const { server } = started;
    await server.stop();
    const broker = openedBroker(server.url);
    const sink = broker.sinkTo('entity-events');
    expect(await sink.deliver(streamedRange(1, 2))).toMatchObject({ delivered: 0, failure: { kind: 'unavailable' } });
    await server.start();
    expect(await sink.deliver(streamedRange(1, 2))).toEqual({ delivered: 2, failure: null });
    await broker.close();
  });

  it('gets CloudEvents when they are asked for, from the next batch on (EVENT-21, CONFIG-30)', async () => {
    const { server, stored } = started;
    let format: EventsFormat = 'cloudevents';
    const broker = openedBroker(server.url, { form: () => ({ format, source: 'https://id.example' }) });
    const sink = broker.sinkTo('entity-events');
    const already = (await stored()).length;
    await sink.deliver([streamed(11), streamed(12, { key: '' })]);
    format = 'envelope';
    await sink.deliver([streamed(13)]);
    await broker.close();
    const [first, second, third] = (await stored()).slice(already);
    expect(first?.contentType).toBe('application/cloudevents+json; charset=utf-8');
    // Strict: it throws for what CloudEvents 1.0 does not allow.
    const event = new CloudEvent(JSON.parse(first?.body ?? ''), true);
    expect(event.toJSON()).toEqual({
      specversion: '1.0',
      id: eventId(11),
      source: 'https://id.example',
      type: 'io.latchkey.userAdded',
      subject: eventId(11),
      time: new Date(streamed(11).envelope.timestamp).toISOString(),
      datacontenttype: 'application/json',
      partitionkey: orgId,
      sequence: '00000000000000000011',
      data: streamed(11).envelope.payload,
    });
    expect(new CloudEvent(JSON.parse(second?.body ?? ''), true)['partitionkey']).toBeUndefined();
    expect(third?.contentType).toBe('application/json');
    expect(JSON.parse(third?.body ?? '')).toEqual(streamed(13).envelope);
  });

  it('lets no one in with a wrong password, and neither reason nor log tells one (EVENT-23, CONFIG-10)', async () => {
    const lines: string[] = [];
    const { server } = started;
    for (const password of ['wr0ng-pa55', 'x', '%22%5c%0awr0ng']) {
      const broker = openedBroker(server.url.replace(/:[^:/]+@/, `:${password}@`), { lines });
      const { delivered, failure } = await broker.sinkTo('entity-events').deliver(streamedRange(21, 22));
      expect({ delivered, kind: failure?.kind }).toEqual({ delivered: 0, kind: 'unavailable' });
      expect(failure?.reason).toMatch(/authorization|WRONGPASS|\[secret\]/i);
      expect(`${failure?.reason}${lines.join('')}`).not.toMatch(/wr0ng|pa55/);
      await broker.close();
    }
  });

  it('that is closed fails what is under way, and whatever comes later, at once', async () => {
    const { server } = started;
    const broker = openedBroker(server.url);
    const sink = broker.sinkTo('entity-events');
    expect((await sink.deliver(streamedRange(31, 32))).failure).toBeNull();
    await server.pause();
    try {
      const underWay = sink.deliver(streamedRange(33, 34));
      const later = broker.sinkTo('audit-events').deliver(streamedRange(33, 34));
      const ends: Delivery[] = [];
      void underWay.then((end) => ends.push(end));
      await sink.close();
      // Before any waiting caller gives up.
      await vi.waitUntil(() => ends.length === 1, { timeout: 3_000 });
      await broker.close();
      const again = sink.deliver(streamedRange(33, 34));
      const another = broker.sinkTo('entity-events').deliver(streamedRange(33, 34));
      for (const delivery of [later, again, another]) void delivery.then((end) => ends.push(end));
      await vi.waitUntil(() => ends.length === 4, { timeout: 1_000 });
      for (const end of ends) expect(end).toMatchObject({ delivered: 0, failure: { kind: 'unavailable' } });
    } finally {
      server.resume();
    }
  });

  it('leaves no connection behind, also where it was never answered', async () => {
    const { server } = started;
    const connections = () => process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
    const before = connections();
    const broker = openedBroker(server.url);
    await server.pause();
    await broker.sinkTo('entity-events').deliver(streamedRange(41, 42));
    await vi.waitUntil(() => connections() <= before);
    server.resume();
    expect((await broker.sinkTo('entity-events').deliver(streamedRange(41, 42))).failure).toBeNull();
    await broker.close();
    await vi.waitUntil(() => connections() <= before);
  });
});

it('a NATS server that greets once and never again is let go of', async () => {
  const sockets = new Set<Socket>();
  let greeted = 0;
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {}).on('close', () => sockets.delete(socket));
    if (greeted === 0) socket.write('INFO {}\r\n');
    greeted += 1;
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const broker = openedBroker(`nats://127.0.0.1:${port}`);
  const { failure } = await broker.sinkTo('entity-events').deliver(streamedRange(1, 2));
  expect(failure?.kind).toBe('unavailable');
  expect(greeted).toBe(2);
  await vi.waitUntil(() => sockets.size === 0);
  await broker.close();
  server.close();
});

describe.each([
  ['NATS', () => NatsServer.begin({ isTls: true, token: 't0ken' })],
  ['Redis', () => RedisServer.begin({ isTls: true, password: 'pa55word' })],
] as const)('a broker that speaks TLS: %s', (_, begin) => {
  it('is trusted by its certificate, and by nothing less (CONFIG-10, EVENT-16)', async () => {
    const server = await begin();
    const plain = server.url.replace('tls:', 'nats:').replace('rediss:', 'redis:');
    const deliver = async (url: string, ca?: string) => {
      const broker = openedBroker(url, ca === undefined ? {} : { ca });
      const { delivered, failure } = await broker.sinkTo('entity-events').deliver(streamedRange(1, 3));
      await broker.close();
      return { delivered, reason: failure?.reason ?? null };
    };
    try {
      expect(await deliver(server.url, certificate.text)).toEqual({ delivered: 3, reason: null });
      expect(await deliver(server.url)).toEqual({
        delivered: 0,
        reason: expect.stringContaining('self-signed certificate'),
      });
      const elsewhere = await deliver(server.url.replace('127.0.0.1', 'localhost'), certificate.text);
      expect(elsewhere).toEqual({ delivered: 0, reason: expect.stringContaining('does not match') });
      expect(await deliver(plain)).toMatchObject({ delivered: 0 });
    } finally {
      await server.close();
    }
  });
});

it('a NATS server that speaks no TLS is told nothing where TLS is asked for (CONFIG-10)', async () => {
  const server = await NatsServer.begin();
  const broker = openedBroker(server.url.replace('nats:', 'tls:'));
  expect(await broker.sinkTo('entity-events').deliver(streamedRange(1, 3))).toMatchObject({
    delivered: 0,
    failure: { kind: 'unavailable' },
  });
  await broker.close();
  await server.close();
});

describe('a server that says again what it was told', () => {
  let server: Server;
  afterEach(() => server.close());

  /** Answers everything with an error that quotes it. */
  async function listen(greeting: string, response: (text: string) => string): Promise<number> {
    const talk = (socket: Socket) => {
      socket.on('error', () => {});
      socket.write(greeting);
      socket.on('data', (bytes) => socket.end(response(bytes.toString())));
    };
    server = createServer(talk).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  }

  const password = 'pa55"word\\of-some-length';
  const oneLine = (text: string) => text.replaceAll(/[\r\n]+/g, ' ');
  const info = JSON.stringify({ server_id: 'x', version: '2.9.0', proto: 1, headers: true, max_payload: 1_000_000 });
  it.each([
    ['nats', `INFO ${info}\r\n`, (text: string) => `-ERR 'Authorization Violation: ${oneLine(text)}'\r\n`],
    ['redis', '', (text: string) => `-ERR unknown command, with args beginning with: ${oneLine(text)}\r\n`],
    ['redis', '', (text: string) => `-ERR ${oneLine(text).slice(0, oneLine(text).indexOf('pa55') + 15)}\r\n`],
  ])('%s: the reason holds no part of the password (CONFIG-10, EVENT-23)', async (scheme, greeting, response) => {
    const port = await listen(greeting, response);
    const lines: string[] = [];
    const broker = openedBroker(`${scheme}://ada:${encodeURIComponent(password)}@127.0.0.1:${port}`, { lines });
    const { failure } = await broker.sinkTo('entity-events').deliver(streamedRange(1, 2));
    await broker.close();
    expect(failure?.kind).toBe('unavailable');
    expect(failure?.reason).toMatch(/\[secret\]|responded with a secret/);
    expect(`${failure?.reason}${lines.join('')}`).not.toMatch(/pa55|of-some/);
  });
});
