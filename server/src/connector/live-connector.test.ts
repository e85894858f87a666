import type { Socket } from 'node:net';
import { setImmediate } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Behaviour, FakeBackend, responding, responseBytes, silent } from '../../test/support/fake-backend.ts';
import { TestClock } from '../../test/support/test-clock.ts';
import { Secret } from '../base/secret.ts';
import { loadConfig } from '../config/load-config.ts';
import type { Connector, ConnectorRequest } from './connector.ts';
import { type LiveConnector, liveConnector } from './live-connector.ts';

let one: FakeBackend;
let two: FakeBackend;
let connector: LiveConnector;
let change: (url: string | null) => void;

/** Opens the client that tests change. */
function open(url: string | null): void {
  const configOf = (address: string | null) => loadConfig({ CONNECTOR_BACKEND_URL: address ?? '' });
  const listeners: ((config: ReturnType<typeof configOf>) => void)[] = [];
  const live = { current: configOf(url), onChange: (listener: (typeof listeners)[0]) => void listeners.push(listener) };
  connector = liveConnector(live, new TestClock());
  change = (address) => {
    for (const listener of listeners) listener(configOf(address));
  };
}

beforeEach(async () => {
  one = await FakeBackend.start(responding(200, '"one"'));
  two = await FakeBackend.start(responding(200, '"two"'));
  open(one.url);
});
afterEach(async () => {
  await connector.close();
  await Promise.all([one.stop(), two.stop()]);
});

const request: ConnectorRequest = {
  method: 'GET',
  path: '/api/v1/entity/user/list',
  credential: new Secret('aaa.bbb.ccc'),
  requestId: 'request-7',
  clientName: 'latchkey',
};

/** Returns the origin that responds to a request over a client. */
async function asked(client: Connector | null, more: Partial<ConnectorRequest> = {}): Promise<string> {
  if (!client) throw new Error('there is no backend');
  return (await client.exchange({ ...request, ...more })).body.toString();
}

/** A behaviour that waits with its answers, and what gives them. */
function waiting(): { readonly behave: Behaviour; answer(body: string): void } {
  const sockets: Socket[] = [];
  return {
    behave: (socket) => void sockets.push(socket),
    answer: (body) => {
      for (const socket of sockets.splice(0)) socket.write(responseBytes(200, body));
    },
  };
}

const closed = (backend: FakeBackend) => vi.waitUntil(() => backend.sockets.size === 0);

describe('liveConnector (CONFIG-13, CONFIG-26)', () => {
  it('asks the backend of the moment: another one, none, and one again', async () => {
    expect(await asked(connector.current)).toBe('"one"');
    change(two.url);
    expect(await asked(connector.current)).toBe('"two"');
    change(null);
    expect(connector.current).toBeNull();
    change(one.url);
    expect(await asked(connector.current)).toBe('"one"');
    expect([one.requests.length, two.requests.length]).toEqual([2, 1]);
  });

  it('keeps the client and its connections when the address stays', async () => {
    await asked(connector.current);
    const before = connector.current;
    // A connection is used again one turn of the event loop after its answer at the earliest.
    await setImmediate();
    change(one.url);
    expect(connector.current).toBe(before);
    await asked(connector.current);
    expect(one.connections).toBe(1);
  });

  it('opens nothing before there is a backend', async () => {
    await connector.close();
    open(null);
    expect(connector.current).toBeNull();
    change(two.url);
    expect(await asked(connector.current)).toBe('"two"');
  });

  it('lets what is under way end with the backend that it began with, and closes its connections then', async () => {
    const slow = waiting();
    one.behave = slow.behave;
    const pending = ['GET', 'POST'].map((method) => asked(connector.current, { method: method as 'GET' | 'POST' }));
    await vi.waitUntil(() => one.requests.length === pending.length);
    change(two.url);
    expect(await asked(connector.current)).toBe('"two"');
    change(null);
    expect(one.sockets.size).toBe(2);
    slow.answer('"one, late"');
    expect(await Promise.all(pending)).toEqual(['"one, late"', '"one, late"']);
    await closed(one);
    await closed(two);
  });

  it('lets a request that is between two tries go on trying there', async () => {
    let tries = 0;
    let reset = () => {};
    const isReset = new Promise<void>((resolve) => {
      reset = resolve;
    });
    one.behave = (socket, received) => {
      tries += 1;
      if (tries > 1) return responding(200, '"one, at last"')(socket, received);
      socket.on('close', reset);
      socket.resetAndDestroy();
    };
    const pending = asked(connector.current);
    await isReset;
    change(two.url);
    expect(await pending).toBe('"one, at last"');
    expect(two.requests).toEqual([]);
    await closed(one);
  });

  it('still serves a request that began before the change and asks only after it', async () => {
    const held = connector.current;
    await asked(held);
    change(two.url);
    await closed(one);
    for (let count = 0; count < 3; count += 1) {
      expect(await asked(held, { method: 'POST' })).toBe('"one"');
      await closed(one);
    }
    expect(two.requests).toEqual([]);
  });

  it('ends what is still under way with an earlier backend when the service stops', async () => {
    one.behave = silent;
    const pending = asked(connector.current).catch((error: unknown) => error);
    await vi.waitUntil(() => one.requests.length === 1);
    change(two.url);
    await connector.close();
    expect(await pending).toMatchObject({ errorName: 'connectorUnavailable' });
    await closed(one);
  });
});
