import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { RedisServer } from '../../../../harness/redis-server.ts';
import {
  eventId,
  firstOnes,
  openedBroker,
  orgId,
  streamed,
  streamedRange,
} from '../../../test/support/streamed-events.ts';
import type { Broker } from './broker.ts';

const whole = { failure: null };
let server: RedisServer;
let broker: Broker;
beforeEach(async () => {
  server = await RedisServer.begin();
  broker = openedBroker(server.url);
});
afterEach(async () => {
  await broker.close();
  await server.close();
});

/** Another server in place of the usual one. */
async function serveWith(options: Parameters<typeof RedisServer.begin>[0]): Promise<void> {
  await broker.close();
  await server.close();
  server = await RedisServer.begin(options);
  broker = openedBroker(server.url);
}

/** The sequences that a stream holds, in its order. */
async function stored(stream = 'entity-events'): Promise<readonly number[]> {
  const entries = await server.entries(stream);
  return entries.map(({ headers }) => Number(headers['Event-Sequence']));
}

function range(from: number, to: number): readonly number[] {
  return streamedRange(from, to).map(({ envelope }) => envelope.sequence);
}

describe('a stream of Redis', () => {
  it('gets events in order, with the fields key, value and headers (EVENT-1, EVENT-2, EVENT-16)', async () => {
    const events = [streamed(1), streamed(2, { key: 'b1'.repeat(12) }), streamed(3, { key: '' }), streamed(4)];
    expect(await broker.sinkTo('entity-events').deliver(events)).toEqual({ delivered: 4, ...whole });
    const entries = await server.entries('entity-events');
    expect(entries.map(({ key }) => key)).toEqual([orgId, 'b1'.repeat(12), '', orgId]);
    expect(entries.map(({ value }) => JSON.parse(value))).toEqual(events.map(({ envelope }) => envelope));
    expect(entries[0]?.headers).toEqual({
      'Content-Type': 'application/json',
      'Event-Id': eventId(1),
      'Event-Type': 'userAdded',
      'Event-Sequence': '1',
    });
    const fields = await server.with(async (client) => (await client.xRange('entity-events', '-', '+'))?.[0]?.message);
    expect(Object.keys(fields ?? {})).toEqual(['key', 'value', 'headers']);
  });

  it('is one for each of our streams, in the database that the address names (CONFIG-10, EVENT-2)', async () => {
    await serveWith({ database: 5, password: 'pa55/w@rd' });
    await broker.sinkTo('entity-events').deliver(streamedRange(1, 2));
    await broker.sinkTo('audit-events').deliver(streamedRange(3, 4));
    expect(await stored()).toEqual([1, 2]);
    expect(await stored('audit-events')).toEqual([3, 4]);
    expect(await server.with((client) => client.info('keyspace'))).toMatch(/^# Keyspace\s+db5:keys=2,\S+\s*$/);
  });

  it('is trimmed to about a million entries, the oldest first (EVENT-16)', async () => {
    const fill = `for n = 1, 1000000 do redis.call('XADD', KEYS[1], '*', 'key', '', 'value', '', 'headers', '{}') end`;
    await server.with((client) => client.eval(fill, { keys: ['entity-events'] }));
    expect(await broker.sinkTo('entity-events').deliver(streamedRange(1, 256))).toEqual({ delivered: 256, ...whole });
    const [length, newest] = await server.with(async (client) => [
      await client.xLen('entity-events'),
      (await client.xRevRange('entity-events', '+', '-', { COUNT: 1 }))?.[0]?.message['key'],
    ]);
    // It removes whole nodes, of 100 entries.
    expect(length).toBeGreaterThanOrEqual(1_000_000);
    expect(length).toBeLessThan(1_000_100);
    expect(newest).toBe(orgId);
  });

  it('gets all of a batch or nothing: when memory ends in the middle of one, events wait (EVENT-9, EVENT-17)', async () => {
    const sink = broker.sinkTo('entity-events');
    await sink.deliver(streamedRange(1, 2));
    const events = Array.from({ length: 256 }, (_, place) => streamed(place + 3, { text: 'x'.repeat(10_000) }));
    const limit = await server.with(async (client) => {
      await client.configSet('maxmemory-policy', 'noeviction');
      const used = Number(/used_memory:(\d+)/.exec(await client.info('memory'))?.[1]);
      await client.configSet('maxmemory', String(used + 1_000_000));
      return used;
    });
    expect(limit).toBeGreaterThan(0);
    const { delivered, failure } = await sink.deliver(events);
    expect({ delivered, kind: failure?.kind }).toEqual({ delivered: 0, kind: 'unavailable' });
    expect(failure?.reason).toMatch(/^OOM /);
    expect(await stored()).toEqual([1, 2]);
    await server.with((client) => client.configSet('maxmemory', '0'));
    expect(await sink.deliver(events)).toEqual({ delivered: 256, ...whole });
    expect(await stored()).toEqual(range(1, 258));
  });

  it('gets nothing after an event that Redis finds too large; that one alone is refused (EVENT-9, EVENT-23)', async () => {
    await serveWith({ lines: ['proto-max-bulk-len 1mb'] });
    const sink = broker.sinkTo('entity-events');
    const events = [...streamedRange(1, 3), streamed(4, { text: 'x'.repeat(1_200_000) }), ...streamedRange(5, 9)];
    /** Redis hangs up while the value is still being sent, and its answer may be lost by that: then it is tried again. */
    const untilAnswered = async (given: typeof events) => {
      for (let tries = 1; ; tries += 1) {
        const delivery = await sink.deliver(given);
        if (delivery.failure?.kind !== 'unavailable' || tries === 20) return delivery;
        expect(await stored()).not.toContain(5);
      }
    };
    expect(await untilAnswered(events)).toMatchObject({ failure: { kind: 'refused' } });
    expect([...new Set(await stored())]).toEqual([1, 2, 3]);
    expect(await untilAnswered(events.slice(3))).toMatchObject({ delivered: 0, failure: { kind: 'refused' } });
    expect(await sink.deliver(events.slice(4))).toEqual({ delivered: 5, ...whole });
    expect([...new Set(await stored())]).toEqual([1, 2, 3, 5, 6, 7, 8, 9]);
  });

  it('waits while another kind of value stands under its name; the other stream goes on (EVENT-23)', async () => {
    await server.with((client) => client.set('entity-events', 'mine'));
    const sink = broker.sinkTo('entity-events');
    const { delivered, failure } = await sink.deliver(streamedRange(1, 5));
    expect({ delivered, kind: failure?.kind }).toEqual({ delivered: 0, kind: 'unavailable' });
    expect(failure?.reason).toMatch(/^WRONGTYPE /);
    expect(await broker.sinkTo('audit-events').deliver(streamedRange(1, 5))).toEqual({ delivered: 5, ...whole });
    await server.with((client) => client.del('entity-events'));
    expect(await sink.deliver(streamedRange(1, 5))).toEqual({ delivered: 5, ...whole });
  });
});

describe('a Redis server', () => {
  it('that may not be written to is waited for (EVENT-17)', async () => {
    const sink = broker.sinkTo('entity-events');
    await sink.deliver(streamedRange(1, 2));
    await server.with((client) => client.sendCommand(['REPLICAOF', '127.0.0.1', '1']));
    const { delivered, failure } = await sink.deliver(streamedRange(3, 5));
    expect({ delivered, kind: failure?.kind }).toEqual({ delivered: 0, kind: 'unavailable' });
    expect(failure?.reason).toMatch(/^READONLY /);
    await server.with((client) => client.sendCommand(['REPLICAOF', 'NO', 'ONE']));
    expect(await sink.deliver(streamedRange(3, 5))).toEqual({ delivered: 3, ...whole });
    expect(await stored()).toEqual(range(1, 5));
  });

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
    expect(await sink.deliver(streamedRange(arrived + 1, arrived + 10))).toEqual({ delivered: 10, ...whole });
    const all = await stored();
    expect(firstOnes(all)).toEqual(range(1, arrived + 10));
    // A batch that comes again does so as a whole, in its order: at no place is an event missing before another.
    const falls = all.filter((sequence, place) => place > 0 && sequence > (all[place - 1] ?? 0) + 1);
    expect(falls).toEqual([]);
  });

  it('that answers nothing holds no one up for long, and gets everything once it does (EVENT-9, EVENT-17)', async () => {
    const sink = broker.sinkTo('entity-events');
    await sink.deliver(streamedRange(1, 5));
    await server.pause();
    const late = { kind: 'unavailable', reason: 'the broker did not respond in time' };
    expect(await sink.deliver(streamedRange(6, 200))).toEqual({ delivered: 0, failure: late });
    server.resume();
    expect(await sink.deliver(streamedRange(6, 300))).toEqual({ delivered: 295, ...whole });
    expect(firstOnes(await stored())).toEqual(range(1, 300));
  });

  it('that comes back empty gets all events from there on (EVENT-17)', async () => {
    const sink = broker.sinkTo('entity-events');
    await sink.deliver(streamedRange(1, 5));
    await server.kill();
    server.empty();
    await server.start();
    await vi.waitUntil(async () => (await sink.deliver(streamedRange(6, 10))).failure === null);
    expect(await stored()).toEqual(range(6, 10));
  });

  it('lets in anyone who may add to streams and nothing else (EVENT-16)', async () => {
    await serveWith({ lines: ['user latchkey on >pa55word ~entity-events +xadd +multi +exec'] });
    await broker.close();
    broker = openedBroker(`redis://latchkey:pa55word@127.0.0.1:${server.port}`);
    expect(await broker.sinkTo('entity-events').deliver(streamedRange(1, 5))).toEqual({ delivered: 5, ...whole });
    const { failure } = await broker.sinkTo('audit-events').deliver(streamedRange(1, 5));
    expect(failure?.kind).toBe('unavailable');
    expect(failure?.reason).toMatch(/^NOPERM /);
  });
});
