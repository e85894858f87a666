import { AckPolicy, type StreamConfig } from '@nats-io/jetstream';
import { headers, nanos } from '@nats-io/transport-node';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { NatsServer } from '../../../../harness/nats-server.ts';
import { SilentLines } from '../../../test/support/silent-lines.ts';
import {
  eventId,
  firstOnes,
  openedBroker,
  orgId,
  streamed,
  streamedRange,
} from '../../../test/support/streamed-events.ts';
import { day, minute, second } from '../../base/clock.ts';
import type { Delivery } from '../relay/sink.ts';
import type { Broker } from './broker.ts';

const whole = { failure: null };
let server: NatsServer;
let broker: Broker;
let logged: string[];
beforeEach(async () => {
  server = await NatsServer.begin();
  logged = [];
  broker = openedBroker(server.url, { lines: logged });
});
afterEach(async () => {
  await broker.close();
  await server.close();
});

/** The sequences that a stream holds, in its order. */
async function stored(stream = 'entity-events'): Promise<readonly number[]> {
  const messages = await server.messages(stream);
  return messages.map(({ headers: told }) => Number(told['Event-Sequence']));
}

/** A stream as an operator makes it. */
async function make(config: Partial<StreamConfig> & { readonly name: string }): Promise<void> {
  await server.with(async ({ streams }) => {
    await streams.add(config);
  });
}

function range(from: number, to: number): readonly number[] {
  return streamedRange(from, to).map(({ envelope }) => envelope.sequence);
}

describe('a stream of JetStream', () => {
  it('gets events in order, each with id, key, type and sequence beside the envelope (EVENT-1, EVENT-2, EVENT-16)', async () => {
    const events = [streamed(1), streamed(2, { key: 'b1'.repeat(12) }), streamed(3, { key: '' }), streamed(4)];
    expect(await broker.sinkTo('entity-events').deliver(events)).toEqual({ delivered: 4, ...whole });
    const messages = await server.messages('entity-events');
    expect(messages.map(({ subject }) => subject)).toEqual([
      `entity-events.${orgId}`,
      `entity-events.${'b1'.repeat(12)}`,
      'entity-events.system',
      `entity-events.${orgId}`,
    ]);
    expect(messages.map(({ body }) => JSON.parse(body))).toEqual(events.map(({ envelope }) => envelope));
    expect(messages.map(({ headers: told }) => told['Event-Key'])).toEqual([orgId, 'b1'.repeat(12), undefined, orgId]);
    expect(messages[0]?.headers).toEqual({
      'Nats-Msg-Id': eventId(1),
      'Content-Type': 'application/json',
      'Event-Id': eventId(1),
      'Event-Type': 'userAdded',
      'Event-Sequence': '1',
      'Event-Key': orgId,
    });
  });

  it('is made when it is missing: kept in files, for as long as events are kept (EVENT-16, EVENT-20)', async () => {
    await broker.close();
    broker = openedBroker(server.url, { retentionDays: 7, lines: logged });
    for (const stream of ['entity-events', 'audit-events'] as const) {
      expect(await broker.sinkTo(stream).deliver(streamedRange(1, 2))).toEqual({ delivered: 2, ...whole });
      const { config } = await server.with(({ streams }) => streams.info(stream));
      expect(config).toMatchObject({
        subjects: [`${stream}.>`],
        storage: 'file',
        retention: 'limits',
        discard: 'old',
        max_age: nanos(7 * day),
        duplicate_window: nanos(5 * minute),
      });
    }
    expect(logged.filter((line) => line.includes('created a stream at the broker'))).toHaveLength(2);
  });

  it('is read by a consumer that knows its name alone, and by one that wants a single organization (EVENT-2)', async () => {
    const events = [streamed(1), streamed(2, { key: 'b1'.repeat(12) }), streamed(3)];
    await broker.sinkTo('entity-events').deliver(events);
    const read = async (name: string, filter: object) =>
      server.with(async (manager) => {
        await manager.consumers.add('entity-events', { durable_name: name, ack_policy: AckPolicy.Explicit, ...filter });
        const consumer = await manager.jetstream().consumers.get('entity-events', name);
        const found: number[] = [];
        for await (const message of await consumer.fetch({ max_messages: 3, expires: second })) {
          found.push(message.json<{ sequence: number }>().sequence);
        }
        return found;
      });
    expect(await read('all', {})).toEqual([1, 2, 3]);
    expect(await read('one', { filter_subject: `entity-events.${orgId}` })).toEqual([1, 3]);
  });

  it('holds each event once, however often and in whatever parts a batch comes again (EVENT-9)', async () => {
    const sink = broker.sinkTo('entity-events');
    for (const [from, to] of [
      [1, 300],
      [1, 300],
      [150, 310],
      [310, 310],
      [305, 320],
    ] as const) {
      expect(await sink.deliver(streamedRange(from, to))).toEqual({ delivered: to - from + 1, ...whole });
    }
    expect(await stored()).toEqual(range(1, 320));
  });

  it('gets a batch again whose events the server knows in part only, and the rest after it (EVENT-9)', async () => {
    const duplicate_window = nanos(2 * second);
    await make({ name: 'entity-events', subjects: ['entity-events.>'], duplicate_window });
    const sink = broker.sinkTo('entity-events');
    await sink.deliver(streamedRange(1, 3));
    // In the same stream, after them: once it is forgotten, so are they.
    const probe = () =>
      server.with((manager) => manager.jetstream().publish('entity-events.probe', '', { msgID: 'probe' }));
    await probe();
    await vi.waitUntil(async () => !(await probe()).duplicate);
    await sink.deliver(streamedRange(4, 6));
    expect(await sink.deliver(streamedRange(1, 8))).toEqual({ delivered: 8, ...whole });
    const events = (await stored()).filter((sequence) => !Number.isNaN(sequence));
    expect(events).toEqual([...range(1, 6), ...range(1, 3), 7, 8]);
  });

  it('gets nothing after a message that the server finds too large; that one alone is refused (EVENT-9, EVENT-23)', async () => {
    await server.close();
    server = await NatsServer.begin({ bytesMax: 4_096 });
    await broker.close();
    broker = openedBroker(server.url);
    const sink = broker.sinkTo('entity-events');
    const events = [...streamedRange(1, 3), streamed(4, { text: 'x'.repeat(5_000) }), ...streamedRange(5, 9)];
    const { delivered, failure } = await sink.deliver(events);
    expect({ delivered, kind: failure?.kind }).toEqual({ delivered: 3, kind: 'refused' });
    expect(await stored()).toEqual([1, 2, 3]);
    expect(await sink.deliver(events.slice(3))).toMatchObject({ delivered: 0, failure: { kind: 'refused' } });
    expect(await sink.deliver(events.slice(4))).toEqual({ delivered: 5, ...whole });
    expect(await stored()).toEqual([1, 2, 3, 5, 6, 7, 8, 9]);
  });

  it('gets nothing after a message that the stream finds too large (EVENT-9, EVENT-23)', async () => {
    await make({ name: 'entity-events', subjects: ['entity-events.>'], max_msg_size: 2_000 });
    const sink = broker.sinkTo('entity-events');
    const events = [streamed(1), streamed(2, { text: 'x'.repeat(3_000) }), ...streamedRange(3, 5)];
    expect(await sink.deliver(events)).toMatchObject({ delivered: 1, failure: { kind: 'refused' } });
    expect(await stored()).toEqual([1]);
  });

  it('waits while it is full, and goes on in order when there is room (EVENT-17, EVENT-23)', async () => {
    const name = 'entity-events';
    await make({ name, subjects: ['entity-events.>'], max_msgs: 5, discard: 'new' });
    const sink = broker.sinkTo('entity-events');
    const { delivered, failure } = await sink.deliver(streamedRange(1, 9));
    expect({ delivered, kind: failure?.kind }).toEqual({ delivered: 5, kind: 'unavailable' });
    expect(failure?.reason).toContain('maximum messages exceeded');
    await server.with(({ streams }) => streams.purge(name, { keep: 1 }));
    expect(await sink.deliver(streamedRange(6, 9))).toEqual({ delivered: 4, ...whole });
    expect(await stored()).toEqual(range(5, 9));
  });
});

describe('a stream that an operator made', () => {
  it('is left as it is, whatever it is called and what else it takes; two streams in it stay in order each (EVENT-2, EVENT-16)', async () => {
    const subjects = ['entity-events.>', 'audit-events.>', 'other.>'];
    await make({ name: 'EVERYTHING', subjects, max_age: nanos(day), duplicate_window: nanos(2 * minute) });
    const before = await server.with(({ streams }) => streams.info('EVERYTHING'));
    const ends = await Promise.all(
      (['entity-events', 'audit-events'] as const).map(async (stream, place) => {
        const sink = broker.sinkTo(stream);
        const from = 1 + place * 10_000;
        const results: Delivery[] = [];
        for (let at = from; at < from + 1_000; at += 200) results.push(await sink.deliver(streamedRange(at, at + 199)));
        return results;
      }),
    );
    expect(ends.flat()).toEqual(Array(10).fill({ delivered: 200, ...whole }));
    const all = await stored('EVERYTHING');
    expect(all.filter((sequence) => sequence < 10_000)).toEqual(range(1, 1_000));
    expect(all.filter((sequence) => sequence > 10_000)).toEqual(range(10_001, 11_000));
    const after = await server.with(({ streams }) => streams.info('EVERYTHING'));
    expect(after.config).toEqual(before.config);
    expect(await server.with(async ({ streams }) => streams.names().next())).toEqual(['EVERYTHING']);
  });

  it('is left as it is also when it takes other subjects: events wait, and the reason names what is missing (EVENT-23)', async () => {
    await make({ name: 'entity-events', subjects: ['entity-events'] });
    expect(await broker.sinkTo('entity-events').deliver(streamedRange(1, 2))).toEqual({
      delivered: 0,
      failure: { kind: 'unavailable', reason: 'no stream takes the subjects entity-events.>, or JetStream is off' },
    });
    const { config } = await server.with(({ streams }) => streams.info('entity-events'));
    expect(config.subjects).toEqual(['entity-events']);
  });

  it('is used by anyone who may publish there and nothing else (EVENT-16)', async () => {
    await make({ name: 'entity-events', subjects: ['entity-events.>'] });
    await server.stop();
    server.configure({
      user: 'latchkey',
      password: 'pa55word',
      permissions: '{ publish: ["entity-events.>"], subscribe: ["_INBOX.>"] }',
    });
    await server.start();
    await broker.close();
    broker = openedBroker(server.url);
    expect(await broker.sinkTo('entity-events').deliver(streamedRange(1, 300))).toEqual({ delivered: 300, ...whole });
    const { delivered, failure } = await broker.sinkTo('audit-events').deliver(streamedRange(1, 2));
    expect({ delivered, kind: failure?.kind }).toEqual({ delivered: 0, kind: 'unavailable' });
    expect(failure?.reason).toMatch(/permission/i);
    await server.stop();
    server.configure({});
    await server.start();
    expect(await stored()).toEqual(range(1, 300));
  });

  it('may get messages of others meanwhile (EVENT-9)', async () => {
    await make({ name: 'entity-events', subjects: ['entity-events.>'] });
    const over = new AbortController();
    const others = server.with(async (_, connection) => {
      for (let count = 0; !over.signal.aborted; count += 1) {
        const told = headers();
        told.set('Nats-Msg-Id', `other-${count}`);
        await connection.request('entity-events.others', '{}', { headers: told, timeout: 10 * second });
      }
    });
    const sink = broker.sinkTo('entity-events');
    const results: Delivery[] = [];
    for (let at = 1; at <= 600; at += 200) results.push(await sink.deliver(streamedRange(at, at + 199)));
    over.abort();
    await others;
    expect(results).toEqual(Array(3).fill({ delivered: 200, ...whole }));
    const own = (await stored()).filter((sequence) => !Number.isNaN(sequence));
    expect(own).toEqual(range(1, 600));
  });
});

describe('a NATS server', () => {
  it('that is ended on the spot gets everything in order once it is back (EVENT-9, EVENT-17)', async () => {
    const sink = broker.sinkTo('entity-events');
    let arrived = 0;
    for (let round = 0; round < 6; round += 1) {
      const underWay = (async () => {
        for (;;) {
          const { delivered, failure } = await sink.deliver(streamedRange(arrived + 1, arrived + 256));
          arrived += delivered;
          if (failure) return failure;
        }
      })();
      const goal = arrived + 500 + round * 37;
      await vi.waitUntil(() => arrived > goal, { interval: 1 });
      await server.kill();
      expect(await underWay).toMatchObject({ kind: 'unavailable' });
      await server.start();
    }
    // All that was under way, since some of it may have been stored and not acknowledged.
    expect(await sink.deliver(streamedRange(arrived + 1, arrived + 256))).toEqual({ delivered: 256, ...whole });
    const all = await stored();
    expect(firstOnes(all)).toEqual(range(1, arrived + 256));
  });

  it('that answers nothing holds no one up for long, and gets everything once it does (EVENT-9, EVENT-17)', async () => {
    const sink = broker.sinkTo('entity-events');
    await sink.deliver(streamedRange(1, 5));
    await server.pause();
    const { delivered, failure } = await sink.deliver(streamedRange(6, 200));
    expect({ delivered, failure }).toEqual({
      delivered: 0,
      failure: { kind: 'unavailable', reason: 'the broker takes too long' },
    });
    server.resume();
    expect(await sink.deliver(streamedRange(6, 300))).toEqual({ delivered: 295, ...whole });
    expect(await stored()).toEqual(range(1, 300));
  });

  it('is connected to anew after a connection went silent (EVENT-17)', async () => {
    const lines = await SilentLines.to(server.port);
    await broker.close();
    broker = openedBroker(`nats://127.0.0.1:${lines.port}`);
    const sink = broker.sinkTo('entity-events');
    await sink.deliver(streamedRange(1, 5));
    lines.silence();
    expect(await sink.deliver(streamedRange(6, 10))).toMatchObject({ delivered: 0, failure: { kind: 'unavailable' } });
    expect(await sink.deliver(streamedRange(6, 10))).toEqual({ delivered: 5, ...whole });
    lines.close();
    expect(await stored()).toEqual(range(1, 10));
  });

  it('that comes back empty, or loses a stream, gets the stream and all events from there on (EVENT-16, EVENT-17)', async () => {
    const sink = broker.sinkTo('entity-events');
    await sink.deliver(streamedRange(1, 5));
    await server.with(({ streams }) => streams.delete('entity-events'));
    expect(await sink.deliver(streamedRange(6, 300))).toEqual({ delivered: 295, ...whole });
    expect(await stored()).toEqual(range(6, 300));
    expect(logged.filter((line) => line.includes('the broker has lost a stream'))).toHaveLength(1);
    await server.kill();
    server.empty();
    await server.start();
    await vi.waitUntil(async () => (await sink.deliver(streamedRange(301, 310))).failure === null);
    expect(await stored()).toEqual(range(301, 310));
    expect(logged.filter((line) => line.includes('the broker has lost a stream'))).toHaveLength(2);
  });

  it('is found among several, of which others are gone (EVENT-16)', async () => {
    await broker.close();
    broker = openedBroker(`nats://127.0.0.1:1,127.0.0.1:${server.port},127.0.0.1:2`);
    expect(await broker.sinkTo('entity-events').deliver(streamedRange(1, 5))).toEqual({ delivered: 5, ...whole });
  });

  it('lets in by a token, and by nothing else (EVENT-16)', async () => {
    await server.stop();
    server.configure({ token: 'tok+en/5ecret' });
    await server.start();
    const events = streamedRange(1, 2);
    expect((await broker.sinkTo('entity-events').deliver(events)).failure?.reason).toMatch(/authorization/i);
    await broker.close();
    broker = openedBroker(server.url);
    expect(await broker.sinkTo('entity-events').deliver(events)).toEqual({ delivered: 2, ...whole });
  });
});
