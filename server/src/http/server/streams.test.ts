import { once } from 'node:events';
import { connect } from 'node:net';
import Fastify, { type FastifyInstance } from 'fastify';
import { pino } from 'pino';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Principal, ServicePrincipal } from '../../access/principal.ts';
import { ApiError } from '../../base/errors.ts';
import { type OpenStream, StreamedText } from '../media.ts';
import { type Streams, streams } from './streams.ts';

let app: FastifyInstance;
let open: Streams;
let logged: { level: number; msg: string }[];
let url: string;
let ended: number;
let signals: AbortSignal[];

/** The written text; a single piece is written without waiting. */
let write: (stream: OpenStream) => AsyncIterable<string>;

const untilAborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });

/** Yields once and then waits until it is aborted. */
async function* waiting({ signal }: OpenStream): AsyncGenerator<string> {
  try {
    yield 'begun';
    await untilAborted(signal);
    yield ' over';
  } finally {
    ended += 1;
  }
}

/** Like `waiting`, but ignores that the reader has left. */
async function* deaf(): AsyncGenerator<string> {
  yield 'begun';
  await new Promise(() => {});
}

beforeEach(async () => {
  logged = [];
  ended = 0;
  signals = [];
  write = waiting;
  open = streams(pino({}, { write: (line) => void logged.push(JSON.parse(line)) }));
  app = Fastify({ forceCloseConnections: true });
  app.decorateRequest('caller', null);
  app.get('/', (request, reply) => {
    const [kind, id = ''] = String(request.headers['x-caller'] ?? '').split(' ');
    // Only what names a caller is looked at.
    if (kind === 'user') request.caller = { kind: 'session', userId: id } as Principal;
    if (kind === 'service') request.caller = { kind: 'service', clientId: id === '' ? null : id } as ServicePrincipal;
    const text = new StreamedText('text/plain', (stream) => {
      signals.push(stream.signal);
      return write(stream);
    });
    return open.write(text, { request, reply, stillAdmitted: async () => {} });
  });
  app.setErrorHandler((error, _, reply) => {
    if (!(error instanceof ApiError)) throw error;
    reply.code(error.status).headers(error.headers).type('application/json').send({ code: error.code });
  });
  url = await app.listen({ host: '127.0.0.1', port: 0 });
});
afterEach(async () => {
  open.end();
  await app.close();
});

/** Begins to read as a caller and waits for the first piece, if it is admitted. */
async function begin(caller = 'user a') {
  const leaving = new AbortController();
  const response = await fetch(url, { headers: { 'x-caller': caller }, signal: leaving.signal });
  const reader = response.body?.getReader();
  const first = response.status === 200 ? new TextDecoder().decode((await reader?.read())?.value) : '';
  return { response, reader, first, leave: () => leaving.abort() };
}

const statusOf = async (caller: string) => {
  const { response, leave } = await begin(caller);
  if (response.status !== 200) leave();
  return response.status;
};

describe('answers that are written piece by piece', () => {
  it('200: each piece arrives as it comes, as UTF-8 of the media type, unbuffered', async () => {
    const { response, first } = await begin();
    expect(first).toBe('begun');
    expect(response.headers.get('content-type')).toBe('text/plain; charset=utf-8');
    expect(response.headers.get('x-accel-buffering')).toBe('no');
    expect(response.headers.get('content-length')).toBeNull();
  });

  it('200: HEAD begins nothing and counts for no one', async () => {
    for (let asked = 0; asked < 30; asked += 1) {
      const { status, headers } = await fetch(url, { method: 'HEAD', headers: { 'x-caller': 'user a' } });
      expect([status, headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8']);
    }
    expect([signals.length, await statusOf('user a')]).toEqual([0, 200]);
  });

  it('429: the 21st of one caller, with when to try again; others are let in (EVENT-13)', async () => {
    const readers = await Promise.all(Array.from({ length: 20 }, () => begin()));
    const { response } = await begin();
    expect(response.status).toBe(429);
    expect(response.headers.get('retry-after')).toBe('10');
    expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(response.headers.get('x-accel-buffering')).toBeNull();
    expect([await statusOf('user b'), await statusOf('service a'), await statusOf('service')]).toEqual([200, 200, 200]);
    for (const { leave } of readers) leave();
  });

  it('200: a place is free as soon as its reader hangs up, whatever is being waited for', async () => {
    for (const kind of [waiting, deaf]) {
      write = kind;
      const user = `user ${kind.name}`;
      const readers = await Promise.all(Array.from({ length: 20 }, () => begin(user)));
      expect(await statusOf(user)).toBe(429);
      readers[7]?.leave();
      await vi.waitUntil(async () => (await statusOf(user)) === 200);
      for (const { leave } of readers) leave();
    }
  });

  it('anyone who hangs up ends what was written for them, and nothing is said of it', async () => {
    const { leave } = await begin();
    leave();
    await vi.waitUntil(() => ended === 1);
    expect([signals[0]?.aborted, logged]).toEqual([true, []]);
  });

  it('so does anyone who hangs up before anything was written', async () => {
    write = async function* later({ signal }) {
      await untilAborted(signal);
      ended += 1;
      yield 'late';
    };
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    await once(socket, 'connect');
    socket.write('GET / HTTP/1.1\r\nHost: x\r\nx-caller: user a\r\n\r\n');
    await vi.waitUntil(() => signals.length === 1);
    socket.destroy();
    await vi.waitUntil(() => ended === 1);
    expect(signals[0]?.aborted).toBe(true);
  });

  it('what fails breaks the answer off and is logged once, with its request', async () => {
    write = async function* failing() {
      yield 'begun';
      throw new Error('the store failed');
    };
    const { reader } = await begin();
    await expect(reader?.read()).rejects.toThrow('terminated');
    expect(logged).toMatchObject([{ level: 50, msg: 'a stream broke off', requestId: expect.any(String) }]);
    // Its place is free.
    write = waiting;
    const statuses = await Promise.all(Array.from({ length: 20 }, () => statusOf('user a')));
    expect(statuses).toEqual(statuses.map(() => 200));
  });

  it('what ends by itself ends the answer, and its place is free', async () => {
    write = async function* short() {
      yield 'all';
    };
    for (let asked = 0; asked < 30; asked += 1) {
      const response = await fetch(url, { headers: { 'x-caller': 'user a' } });
      expect(await response.text()).toBe('all');
    }
  });

  it('anyone who does not read keeps no more than some pieces waiting', async () => {
    let pieces = 0;
    write = async function* endless({ signal }) {
      while (!signal.aborted) {
        pieces += 1;
        yield 'x'.repeat(10_000);
      }
    };
    const socket = connect(Number(new URL(url).port), '127.0.0.1').pause();
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n');
    let before = -1;
    await vi.waitUntil(
      () => {
        const isStill = pieces > 0 && pieces === before;
        before = pieces;
        return isStill;
      },
      { interval: 200, timeout: 10_000 },
    );
    // What the operating system takes is a few megabytes; the rest is not even made.
    expect(pieces).toBeLessThan(2_000);
    socket.destroy();
    await vi.waitUntil(() => signals[0]?.aborted === true);
  });

  it('all are told when the service stops, and so is who begins after that (RUN-7)', async () => {
    const readers = [await begin('user a'), await begin('user b')];
    open.end();
    for (const { reader } of readers) {
      expect(new TextDecoder().decode((await reader?.read())?.value)).toBe(' over');
      expect((await reader?.read())?.done).toBe(true);
    }
    const late = await fetch(url, { headers: { 'x-caller': 'user a' } });
    expect(await late.text()).toBe('begun over');
    expect(ended).toBe(3);
  });
});
