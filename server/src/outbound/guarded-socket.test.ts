import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Resolve } from './address-guard.ts';
import { guardedSocket } from './guarded-socket.ts';

/** An address without a listener, at port 1. */
const closed = '127.0.0.2';

describe('guardedSocket (CONFIG-40)', () => {
  let server: Server;
  let port: number;
  let connections = 0;
  beforeAll(async () => {
    server = createServer((socket) => {
      connections += 1;
      socket.end();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    port = typeof address === 'object' ? Number(address?.port) : 0;
  });
  afterAll(() => server.close());

  /** Returns the outcome of a connection: `connected`, or the error. */
  async function outcome(host: string, networks: readonly string[], resolve?: Resolve): Promise<string> {
    const at = host === closed ? 1 : port;
    const { getSocket } = guardedSocket({ networks, timeoutMs: 5_000, resolve });
    const socket = await new Promise<Socket | Error>((done) => {
      getSocket({ host, port: at }, (error, found) => done(error ?? found?.connection ?? new Error('nothing')));
    });
    if (socket instanceof Error) return socket.name;
    socket.destroy();
    return 'connected';
  }

  const resolving =
    (...responses: string[]): Resolve =>
    async () => [{ address: responses.shift() ?? '192.0.2.1', family: 4 }];

  it.each([['127.0.0.1'], ['::1'], ['::ffff:127.0.0.1'], ['10.0.0.1'], ['169.254.169.254'], ['localhost']])(
    'does not connect to %s',
    async (host) => {
      const before = connections;
      expect(await outcome(host, [])).toBe('ForbiddenAddressError');
      expect(connections).toBe(before);
    },
  );

  it('judges the address that a name has when it is connected to, each time', async () => {
    const before = connections;
    const rebound = resolving('127.0.0.1', '10.0.0.1');
    expect(await outcome('mail.example.com', ['127.0.0.1'], rebound)).toBe('connected');
    expect(await outcome('mail.example.com', ['127.0.0.1'], rebound)).toBe('ForbiddenAddressError');
    expect(connections).toBe(before + 1);
  });

  it('refuses a name of which one address is forbidden', async () => {
    const both: Resolve = async () => ['1.1.1.1', '127.0.0.1'].map((address) => ({ address, family: 4 }));
    expect(await outcome('mail.example.com', [], both)).toBe('ForbiddenAddressError');
  });

  it('connects to what is listed; where that fails the reason is not told', async () => {
    expect(await outcome('127.0.0.1', ['127.0.0.0/8'])).toBe('connected');
    expect(await outcome(closed, ['127.0.0.0/8'])).toBe('InsideError');
  });
});
