import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { createServer as createRawServer } from 'node:net';
import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  presentClock,
  type Responding,
  receiverCertificate,
  reply,
  verified,
  WebhookReceiver,
} from '../../../test/support/webhook-receiver.ts';
import type { Resolve } from '../../outbound/address-guard.ts';
import { createRawWebhookSecret } from './signature.ts';
import { openWebhookSender, type WebhookSender } from './webhook-sender.ts';

const loopback = ['127.0.0.0/8', '::1'];
const message = { id: 'a'.repeat(24), contentType: 'application/json', body: '{"eventType":"userAdded"}' };
const secret = createRawWebhookSecret();
const forbidden = { kind: 'unavailable', reason: 'the address is not public, and not in OUTBOUND_NETWORKS' };

const opened: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0)) await close();
});

async function receiverWith(options: Parameters<typeof WebhookReceiver.start>[0] = {}): Promise<WebhookReceiver> {
  const receiver = await WebhookReceiver.start(options);
  opened.push(() => receiver.stop());
  return receiver;
}

function senderWith(parts: Partial<Parameters<typeof openWebhookSender>[0]> = {}): WebhookSender {
  const sender = openWebhookSender({ clock: presentClock(), networks: () => loopback, ...parts });
  opened.push(() => sender.close());
  return sender;
}

const sendTo = (sender: WebhookSender, url: string, id = 'one') => sender.send({ id, url, secrets: [secret] }, message);

describe('a message', () => {
  it('is a signed POST that says what it is (EVENT-18)', async () => {
    const receiver = await receiverWith();
    const clock = presentClock();
    const attempt = await sendTo(senderWith({ clock }), receiver.url);
    expect(attempt).toEqual({
      atMs: clock.now(),
      durationMs: expect.any(Number),
      status: 204,
      failure: null,
    });
    const [got] = receiver.messages;
    expect(got).toMatchObject({ method: 'POST', path: '/hook/a-secret-path?of=the-receiver', text: message.body });
    expect(got?.headers).toMatchObject({
      'content-type': 'application/json',
      'user-agent': 'latchkey',
      'webhook-id': message.id,
      'webhook-timestamp': String(Math.floor(clock.now() / 1_000)),
    });
    expect(got && verified(secret.expose(), got)).toEqual({ eventType: 'userAdded' });
    expect(() => got && verified(createRawWebhookSecret().expose(), got)).toThrow('No matching signature');
  });

  it('has a signature for each secret (EVENT-25)', async () => {
    const receiver = await receiverWith();
    const other = createRawWebhookSecret();
    await senderWith().send({ id: 'one', url: receiver.url, secrets: [secret, other] }, message);
    const [got] = receiver.messages;
    expect(got?.headers['webhook-signature']).toMatch(/^v1,[\w+/]{43}= v1,[\w+/]{43}=$/);
    for (const known of [secret, other]) expect(got && verified(known.expose(), got)).toBeTruthy();
  });

  it('keeps its id and takes a new timestamp each time it is sent (EVENT-9, EVENT-18)', async () => {
    const receiver = await receiverWith();
    const clock = presentClock();
    const sender = senderWith({ clock });
    await sendTo(sender, receiver.url);
    clock.advance(90_000);
    await sendTo(sender, receiver.url);
    const seen = receiver.messages.map(({ headers }) => [headers['webhook-id'], Number(headers['webhook-timestamp'])]);
    const first = seen[0]?.[1];
    expect(seen).toEqual([
      [message.id, first],
      [message.id, Number(first) + 90],
    ]);
    expect(receiver.messages[0]?.headers['webhook-signature']).not.toBe(
      receiver.messages[1]?.headers['webhook-signature'],
    );
  });
});

describe('connections', () => {
  it('are kept from one message of a webhook to the next, and shared with no other', async () => {
    const receiver = await receiverWith();
    const sender = senderWith();
    for (let count = 0; count < 3; count += 1) await sendTo(sender, receiver.url);
    await sendTo(sender, receiver.url, 'two');
    expect(receiver.messages.map(({ connection }) => connection)).toEqual([1, 1, 1, 2]);
  });

  it('end with the webhook, and with the sender', async () => {
    const receiver = await receiverWith();
    const sender = senderWith();
    await sendTo(sender, receiver.url);
    await sendTo(sender, receiver.url, 'two');
    expect(receiver.open).toBe(2);
    await sender.forget('one');
    await vi.waitUntil(() => receiver.open === 1);
    await sender.close();
    await vi.waitUntil(() => receiver.open === 0);
  });

  it('an exchange that is under way fails when its connection ends', async () => {
    const receiver = await receiverWith();
    receiver.answering = () => {};
    const sender = senderWith();
    const sent = sendTo(sender, receiver.url);
    await vi.waitUntil(() => receiver.messages.length === 1);
    await sender.forget('one');
    expect((await sent).failure).toEqual({ kind: 'unavailable', reason: 'the connection was ended here' });
  });
});

describe('answers', () => {
  const unwell = (status: number) => ({ kind: 'unavailable', reason: `answered ${status}` });
  it.each([
    [200, null],
    [201, null],
    [202, null],
    [204, null],
    [299, null],
    [400, { kind: 'refused', reason: 'answered 400' }],
    [401, { kind: 'refused', reason: 'answered 401' }],
    [404, { kind: 'refused', reason: 'answered 404' }],
    [409, { kind: 'refused', reason: 'answered 409' }],
    [422, { kind: 'refused', reason: 'answered 422' }],
    [410, { kind: 'gone', reason: 'answered 410' }],
    [408, unwell(408)],
    [425, unwell(425)],
    [429, unwell(429)],
    [500, unwell(500)],
    [502, unwell(502)],
    [503, unwell(503)],
    [599, unwell(599)],
    [600, unwell(600)],
  ])('%i (EVENT-23, EVENT-26)', async (status, failure) => {
    const receiver = await receiverWith();
    receiver.answering = reply(status);
    expect(await sendTo(senderWith(), receiver.url)).toMatchObject({ status, failure });
  });

  it.each([301, 302, 303, 307, 308])('%i leads nowhere (EVENT-24)', async (status) => {
    const [receiver, elsewhere] = [await receiverWith(), await receiverWith()];
    receiver.answering = reply(status, { location: elsewhere.url });
    const { failure } = await sendTo(senderWith(), receiver.url);
    expect(failure).toEqual({ kind: 'unavailable', reason: `answered ${status}: redirects are not followed` });
    expect([receiver.messages.length, elsewhere.connections]).toEqual([1, 0]);
  });

  const clock = presentClock();
  const inTwoMinutes = new Date(Math.floor(clock.now() / 1_000) * 1_000 + 120_000).toUTCString();
  it.each([
    ['120', 120_000],
    ['999999999', 3_600_000],
    ['99999999999999999999', 3_600_000],
    [inTwoMinutes, Date.parse(inTwoMinutes) - clock.now()],
    ['0', undefined],
    ['-5', undefined],
    ['1e3', undefined],
    ['soon', undefined],
    ['Thu, 01 Jan 1970 00:00:00 GMT', undefined],
    ['', undefined],
  ])('Retry-After: %s', async (header, retryAfterMs) => {
    const receiver = await receiverWith();
    receiver.answering = reply(503, { 'retry-after': header });
    const { failure } = await sendTo(senderWith({ clock }), receiver.url);
    expect(failure?.retryAfterMs).toBe(retryAfterMs);
  });
});

describe('anyone who answers badly', () => {
  const timeoutMs = 400;
  const late = { status: null, failure: { kind: 'unavailable', reason: 'no response in time' } };

  it.each<[string, Responding]>([
    ['never answers', () => {}],
    [
      'answers a byte of its head at a time, and never ends',
      ({ socket }) => {
        const timer = setInterval(() => socket?.write('x'), 20);
        socket?.write('HTTP/1.1 200 OK\r\nx-slow: ');
        socket?.on('close', () => clearInterval(timer));
      },
    ],
    [
      'says again and again that it is about to answer',
      (response) => {
        const timer = setInterval(() => response.writeProcessing(), 20);
        response.socket?.on('close', () => clearInterval(timer));
      },
    ],
  ])('%s: it is given up in time, connection and all', async (_, responding) => {
    const receiver = await receiverWith();
    receiver.answering = responding;
    expect(await sendTo(senderWith({ timeoutMs }), receiver.url)).toMatchObject(late);
    await vi.waitUntil(() => receiver.open === 0);
  });

  it.each<[string, Responding]>([
    [
      'sends a body without end',
      (response) => {
        response.writeHead(200);
        const more = () => {
          while (response.write('x'.repeat(10_000)));
        };
        response.on('drain', more);
        more();
      },
    ],
    [
      'announces a huge body',
      (response) => void response.writeHead(200, { 'content-length': '1000000000' }).write('x'),
    ],
    [
      'sends a body a byte at a time',
      (response) => {
        response.writeHead(200);
        const timer = setInterval(() => response.write('x'), 20);
        response.on('close', () => clearInterval(timer));
      },
    ],
    [
      'breaks off in its body',
      (response) => {
        response.writeHead(200, { 'content-length': '100' }).write('x');
        setImmediate(() => response.destroy());
      },
    ],
  ])('%s: it has the message all the same, and the connection is let go', async (_, responding) => {
    const receiver = await receiverWith();
    receiver.answering = responding;
    const sender = senderWith();
    expect(await sendTo(sender, receiver.url)).toMatchObject({ status: 200, failure: null });
    await vi.waitUntil(() => receiver.open === 0);
    receiver.answering = reply(200);
    expect(await sendTo(sender, receiver.url)).toMatchObject({ status: 200, failure: null });
  });

  it('takes in little of a body without end', async () => {
    const receiver = await receiverWith();
    let written = 0;
    const lasting = new Promise<void>((resolve) => {
      receiver.answering = (response) => {
        response.writeHead(200).on('close', resolve);
        const more = () => {
          let isRoom = true;
          while (isRoom && !response.destroyed) {
            written += 10_000;
            isRoom = response.write('x'.repeat(10_000));
          }
        };
        response.on('drain', more);
        more();
      };
    });
    await sendTo(senderWith(), receiver.url);
    await lasting;
    // What lies in the buffers of both sides; without a limit it is hundreds of megabytes.
    expect(written).toBeLessThan(20_000_000);
  });

  it('a small body is read, and its connection used again', async () => {
    const receiver = await receiverWith();
    receiver.answering = (response) => void response.end('x'.repeat(4_000));
    const sender = senderWith();
    await sendTo(sender, receiver.url);
    await sendTo(sender, receiver.url);
    expect(receiver.connections).toBe(1);
  });

  it.each([
    ['what is not HTTP', 'SMTP ready\r\n', 'the response is not valid HTTP'],
    ['a head without end', `HTTP/1.1 200 OK\r\nx: ${'x'.repeat(100_000)}`, 'failed: UND_ERR_HEADERS_OVERFLOW'],
  ])('answers %s', async (_, bytes, reason) => {
    const server = createRawServer((socket) => {
      socket.on('error', () => {}).once('data', () => socket.write(bytes));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const { failure } = await sendTo(senderWith({ timeoutMs: 5_000 }), `http://127.0.0.1:${port}/`);
    server.close();
    expect(failure).toEqual({ kind: 'unavailable', reason });
  });

  it('ends the connection without a word, or refuses it', async () => {
    const receiver = await receiverWith();
    receiver.answering = ({ socket }) => void socket?.destroy();
    const sender = senderWith();
    const lost = { kind: 'unavailable', reason: 'the connection was lost' };
    expect((await sendTo(sender, receiver.url)).failure).toEqual(lost);
    const { url } = receiver;
    await opened.pop()?.();
    await receiver.stop().catch(() => {});
    expect((await sendTo(senderWith(), url)).failure).toEqual({
      kind: 'unavailable',
      reason: 'the connection was refused',
    });
  });
});

describe('https', () => {
  it('takes a certificate that is trusted, and for this host (EVENT-24)', async () => {
    const receiver = await receiverWith({ isSecure: true });
    expect(await sendTo(senderWith({ ca: receiverCertificate }), receiver.url)).toMatchObject({ failure: null });
  });

  it.each([
    ['nobody vouches for', { parts: {}, host: '127.0.0.1', code: 'DEPTH_ZERO_SELF_SIGNED_CERT' }],
    [
      'is of another host',
      { parts: { ca: receiverCertificate }, host: '127.0.0.2', code: 'ERR_TLS_CERT_ALTNAME_INVALID' },
    ],
  ])('sends nothing to one whose certificate %s', async (_, { parts, host, code }) => {
    const receiver = await receiverWith({ isSecure: true, host: '0.0.0.0' });
    const { failure } = await sendTo(senderWith(parts), receiver.at(host));
    expect(failure).toEqual({ kind: 'unavailable', reason: `the connection is not secure: ${code}` });
    expect(receiver.messages).toEqual([]);
  });

  it('sends nothing to one that speaks no TLS', async () => {
    const receiver = await receiverWith();
    const { failure } = await sendTo(senderWith(), receiver.url.replace('http:', 'https:'));
    expect(failure).toMatchObject({
      kind: 'unavailable',
      reason: expect.stringMatching(/^the connection is not secure: /),
    });
    expect(receiver.messages).toEqual([]);
  });
});

describe('the guard', () => {
  const none: readonly string[] = [];
  const refuseWith = (code: string) => async () => {
    throw Object.assign(new Error('no'), { code });
  };
  const toPort = (host: string, port: number, protocol = 'https') => `${protocol}://${host}:${port}/`;

  it.each(['localhost', '127.0.0.1', '127.1.2.3', '2130706433', '0x7f.1', '0177.0.0.1', '127.1', '[::1]'])(
    'connects to nothing at https://%s without WEBHOOK_NETWORKS (EVENT-24)',
    async (host) => {
      const receiver = await receiverWith({ isSecure: true, host: '::' });
      const sender = senderWith({ networks: () => none, ca: receiverCertificate });
      expect((await sendTo(sender, toPort(host, receiver.port))).failure).toEqual(forbidden);
      expect(receiver.connections).toBe(0);
    },
  );

  it.each(['[::ffff:127.0.0.1]', '[::ffff:7f00:1]', '[64:ff9b::127.0.0.1]', '0.0.0.0', '0', '[::]', '[::127.0.0.1]'])(
    'nor at https://%s (EVENT-24)',
    async (host) => {
      const receiver = await receiverWith({ isSecure: true, host: '::' });
      const sender = senderWith({ networks: () => none, ca: receiverCertificate });
      expect((await sendTo(sender, toPort(host, receiver.port))).failure).toEqual(forbidden);
      expect(receiver.connections).toBe(0);
    },
  );

  it('takes http to what WEBHOOK_NETWORKS lists, and nowhere else (EVENT-24, CONFIG-31)', async () => {
    const receiver = await receiverWith();
    const asked: string[] = [];
    const resolve: Resolve = async (hostname) => {
      asked.push(hostname);
      return [{ address: '93.184.216.34', family: 4 }];
    };
    const sender = senderWith({ networks: () => ['127.0.0.1'], resolve });
    expect((await sendTo(sender, receiver.url)).failure).toBeNull();
    for (const host of ['93.184.216.34', 'example.com', '127.0.0.2']) {
      expect((await sendTo(sender, toPort(host, receiver.port, 'http'))).failure).toEqual(forbidden);
    }
    expect(asked).toEqual(['example.com']);
  });

  it('judges every address that a name has (EVENT-24)', async () => {
    const receiver = await receiverWith({ isSecure: true });
    const resolve: Resolve = async () => [
      { address: '93.184.216.34', family: 4 },
      { address: '127.0.0.1', family: 4 },
    ];
    const sender = senderWith({ networks: () => none, resolve });
    expect((await sendTo(sender, toPort('example.com', receiver.port))).failure).toEqual(forbidden);
    expect(receiver.connections).toBe(0);
  });

  it('connects to what was judged, however a name changes meanwhile (EVENT-24)', async () => {
    const receiver = await receiverWith();
    const responses = ['127.0.0.1', '127.0.0.2', '127.0.0.2'];
    let count = 0;
    const resolve: Resolve = async () => {
      const address = responses[count] ?? '';
      count += 1;
      return [{ address, family: 4 }];
    };
    // Stands for a public address: the first look-up is good, and every later one is not.
    const networks = ['127.0.0.1'];
    const sender = senderWith({ networks: () => networks, resolve });
    const url = toPort('rebinding.example', receiver.port, 'http');
    expect((await sendTo(sender, url)).failure).toBeNull();
    expect(count).toBe(1);
    // Open connections stay; new ones are checked again.
    expect((await sendTo(sender, url)).failure).toBeNull();
    expect([count, receiver.connections]).toEqual([1, 1]);
    await sender.forget('one');
    expect((await sendTo(sender, url)).failure).toEqual(forbidden);
    expect([count, receiver.connections]).toEqual([2, 1]);
  });

  it.each<[string, Resolve, string]>([
    ['has no address', async () => [], 'the name does not resolve'],
    ['is not known', refuseWith('ENOTFOUND'), 'the name does not resolve'],
    ['cannot be looked up', refuseWith('EAI_AGAIN'), 'the name could not be resolved'],
    ['takes for ever to look up', () => new Promise(() => {}), 'no response in time'],
  ])('a name that %s', async (_, resolve, reason) => {
    const sender = senderWith({ resolve, timeoutMs: 300 });
    expect((await sendTo(sender, 'https://example.com/')).failure).toEqual({ kind: 'unavailable', reason });
  });

  it('asks the system about names, and goes where it says (CONFIG-31)', async () => {
    const receiver = await receiverWith();
    expect((await sendTo(senderWith(), receiver.at('localhost'))).failure).toBeNull();
  });

  it('another WEBHOOK_NETWORKS counts from the next message on, whatever is connected (CONFIG-26, CONFIG-31)', async () => {
    const receiver = await receiverWith();
    let networks = ['127.0.0.1'];
    const sender = senderWith({ networks: () => networks });
    expect((await sendTo(sender, receiver.url)).failure).toBeNull();
    networks = ['127.0.0.2'];
    expect((await sendTo(sender, receiver.url)).failure).toEqual(forbidden);
    await vi.waitUntil(() => receiver.open === 0);
    networks = ['10.0.0.0/8', '127.0.0.0/8'];
    expect((await sendTo(sender, receiver.url)).failure).toBeNull();
    expect(receiver.connections).toBe(2);
  });
});
