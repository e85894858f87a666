import { EventEmitter, once } from 'node:events';
import { deflateSync } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import {
  compressedZeros,
  jpegMarkers,
  jpegOfScans,
  madeAnimatedWebp,
  madeGif,
  madePng,
  noise,
  onePixel,
  plain,
} from '../support/made-pictures.ts';
import { type Client, TestApp, type TestResponse } from '../support/test-app.ts';

const megabyte = 1_048_576;
const fresh = (bytes: Buffer) => new Uint8Array(bytes);
const text = (content: string) => Buffer.from(content, 'latin1');

let app: TestApp;
let admin: Client;
let member: Client;

beforeAll(async () => {
  app = await TestApp.start();
  admin = await app.setUp();
  member = await app.member(admin, 'grace@example.com');
});
afterAll(() => app.close());
afterEach(expectNoFaults);

/** Whatever was sent, nothing of it was a fault of the service. */
function expectNoFaults(): void {
  const faults = app.logLines.map((line) => JSON.parse(line)).filter(({ level }) => level >= 50);
  expect(faults).toEqual([]);
}

/** Uploads with a name and a type that promise a PNG. */
function upload(bytes: Buffer, client = member): Promise<TestResponse> {
  const form = new FormData();
  form.append('file', new Blob([fresh(bytes)], { type: 'image/png' }), 'picture.png');
  return client.call('PUT', '/users/dp', { form });
}

/** Returns the text of an error, which is never that of the library. */
function told({ status, body }: TestResponse): string {
  expect(body.message).not.toMatch(/vips|sharp|libpng|buffer|VipsJpeg|\n/i);
  return `${status} ${body.error.code}`;
}

/** The most memory that this process had while the work went on, beyond what it had before, in megabytes. */
async function memoryOf(work: () => Promise<unknown>): Promise<number> {
  const before = process.memoryUsage.rss();
  let most = before;
  const look = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss());
  }, 2);
  await work().finally(() => clearInterval(look));
  return (most - before) / megabyte;
}

describe('I1: bombs (PICTURE-12)', () => {
  const lie = deflateSync(Buffer.alloc(100));
  const bombs: readonly (readonly [string, () => Buffer | Promise<Buffer>])[] = [
    ['20,000² of one bit', () => madePng(20_000, 20_000, { rows: compressedZeros(2_501 * 20_000), depth: 1 })],
    ['10,000² in colour', () => madePng(10_000, 10_000, { rows: compressedZeros(30_001 * 10_000), colour: 2 })],
    ['a header that lies, too large', () => madePng(20_000, 20_000, { rows: lie, colour: 2 })],
    ['a header that lies, not too large', () => madePng(6_000, 6_000, { rows: lie, colour: 2 })],
    ['a header of more than there can be', () => madePng(0x7fffffff, 0x7fffffff, { rows: lie })],
    ['a GIF of 143 frames', () => madeGif(1_000, 1_000, 143)],
    ['an animated WebP of 11 frames', () => madeAnimatedWebp(2_000, 11)],
    ['a JPEG of 1,000 scans', () => jpegOfScans(800, 1_000)],
  ];

  it.each(bombs)('400: %s', async (_, make) => {
    expect(told(await upload(await make()))).toBe('400 BAD_REQUEST');
  });

  it('all of them at once: 400, in little memory, while everything else is answered', async () => {
    const made = await Promise.all(bombs.map(async ([, make]) => make()));
    const memory = await memoryOf(async () => {
      const responses = Promise.all(made.map((bytes) => upload(bytes)));
      expect((await admin.get('/users')).status).toBe(200);
      for (const response of await responses) expect(told(response)).toBe('400 BAD_REQUEST');
    });
    expect(memory).toBeLessThan(150);
    expect((await member.get('/users/dp')).body.errorMessage).toBe('User picture not found');
  });
});

describe('I2: what is no picture, named .png (PICTURE-10)', () => {
  it.each([
    ['SVG', () => text('<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'), 415],
    ['HTML', () => text('<!doctype html><script>alert(1)</script>'), 415],
    ['PDF', () => text('%PDF-1.7\n1 0 obj'), 415],
    ['TIFF', () => plain(9, 9, 'red').tiff().toBuffer(), 415],
    ['AVIF', () => plain(9, 9, 'red').avif().toBuffer(), 415],
    ['HEIC', () => text('\0\0\0\x18ftypheic\0\0\0\0mif1heic'), 415],
    ['text', () => text('hello'), 415],
    ['a path', () => text('/etc/passwd'), 415],
    ['an address', () => text('http://127.0.0.1/'), 415],
    ['a PNG after a PDF', () => Buffer.concat([text('%PDF-1.7\n'), onePixel()]), 415],
    ['a script after the signature of a GIF', () => text('GIF89a=1;alert(1)//'), 400],
    ['half a PNG', () => onePixel().subarray(0, 40), 400],
    ['nothing', () => Buffer.alloc(0), 400],
  ] as const)('%s', async (_, make, status) => {
    const response = await upload(await make());
    expect(told(response)).toBe(status === 415 ? '415 UNSUPPORTED_MEDIA_TYPE' : '400 BAD_REQUEST');
  });

  it('201: of a picture with a script behind it only the pixels are kept (PICTURE-15)', async () => {
    const script = '<script>alert(1)</script>';
    const { status, bytes } = await upload(Buffer.concat([onePixel(), text(script)]));
    expect([status, bytes.includes(script)]).toEqual([201, false]);
    expect((await member.get('/users/dp')).bytes.includes(script)).toBe(false);
  });
});

describe('I4: damaged pictures', () => {
  it('each is stored as a JPEG or refused, and memory does not grow (PICTURE-12, PICTURE-13)', async () => {
    const small = () => noise(24, 17, 40);
    const whole = await Promise.all(
      [small().png(), small().jpeg(), small().jpeg({ progressive: true }), small().webp(), small().gif()].map(
        (picture) => picture.toBuffer(),
      ),
    );
    const change = fc.record({ at: fc.double({ min: 0, max: 1, noNaN: true }), value: fc.nat(255), cut: fc.nat(3) });
    const damaged = fc
      .tuple(fc.constantFrom(...whole), fc.array(change, { minLength: 1, maxLength: 4 }))
      .map(([bytes, changes]) => {
        const copy = Buffer.from(bytes);
        for (const { at, value } of changes) copy[Math.floor(at * (copy.length - 1))] = value;
        const [{ cut, at } = { cut: 0, at: 0 }] = changes;
        return cut === 0 ? copy.subarray(0, Math.floor(at * copy.length)) : copy;
      });
    // Few damaged ones are still a picture; all of these are.
    const continued = fc
      .tuple(fc.constantFrom(...whole), fc.uint8Array({ minLength: 1, maxLength: 64 }))
      .map((parts) => Buffer.concat(parts));
    const sent = fc.oneof({ weight: 7, arbitrary: damaged }, { weight: 1, arbitrary: continued });
    const statuses = new Map<number, number>();
    const memory = await memoryOf(() =>
      fc.assert(
        fc.asyncProperty(fc.array(sent, { minLength: 8, maxLength: 8 }), async (some) => {
          for (const response of await Promise.all(some.map((bytes) => upload(bytes)))) {
            statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
            const came = response.status === 201 ? jpegMarkers(response.bytes)[1] : told(response);
            expect(['db', '400 BAD_REQUEST', '415 UNSUPPORTED_MEDIA_TYPE']).toContain(came);
          }
        }),
        { numRuns: 60 },
      ),
    );
    expect([...statuses.keys()].sort((a, b) => a - b)).toEqual([201, 400, 415]);
    expect(memory).toBeLessThan(150);
    expect((await upload(onePixel())).status).toBe(201);
  });
});

describe('40 uploads at once (PICTURE-17)', () => {
  /** Holds every upload back until `count` are here, so that the line is as long as it gets. Answers how to stop. */
  function holdUntil(count: number): () => void {
    const { pictures } = app.services;
    const steps = new EventEmitter();
    const all = once(steps, 'all');
    let arrived = 0;
    const compress = async (bytes: Uint8Array, sender: string) => {
      arrived += 1;
      if (arrived === count) steps.emit('all');
      await all;
      return pictures.compress(bytes, sender);
    };
    Object.assign(app.services, { pictures: { compress } });
    return () => Object.assign(app.services, { pictures });
  }

  function expectRefused(response: TestResponse, error: string): void {
    expect([told(response), response.headers.get('retry-after')]).toEqual([error, '5']);
  }

  it('503 for those over the line, 201 for the rest, and everything else is answered meanwhile', async () => {
    const photo = await noise(1_200, 900, 30).jpeg().toBuffer();
    const senders = [admin, member];
    for (let made = 0; made < 3; made += 1) senders.push(await app.member(admin, `sender${made}@example.com`));
    const stop = holdUntil(40);
    const done = new Set<TestResponse>();
    const uploads = Array.from({ length: 40 }, async (_, place) => {
      const response = await upload(photo, senders[place % senders.length]);
      done.add(response);
      return response;
    });
    let answeredMeanwhile = 0;
    while (done.size < 35) {
      expect((await member.get('/users')).status).toBe(200);
      expect((await admin.patch('/org', { shortName: `n${answeredMeanwhile}` })).status).toBe(200);
      if (done.size < 35) answeredMeanwhile += 1;
    }
    const responses = await Promise.all(uploads);
    stop();
    const refused = responses.filter(({ status }) => status !== 201);
    for (const response of refused) expectRefused(response, '503 UNAVAILABLE');
    expect(refused).toHaveLength(6);
    expect(answeredMeanwhile).toBeGreaterThan(10);
    expect((await upload(photo, admin)).status).toBe(201);
  });

  it('429 for the 11th of one person, with whatever credential, and 201 for everyone else', async () => {
    const photo = await noise(600, 400, 30).jpeg().toBuffer();
    const token = await member.token();
    const stop = holdUntil(16);
    const own = Array.from({ length: 14 }, (_, place) => upload(photo, place % 2 === 0 ? member : token));
    const others = Array.from({ length: 2 }, () => upload(photo, admin));
    const refused = (await Promise.all(own)).filter(({ status }) => status !== 201);
    for (const response of refused) expectRefused(response, '429 RATE_LIMITED');
    expect(refused).toHaveLength(4);
    expect((await Promise.all(others)).map(({ status }) => status)).toEqual([201, 201]);
    stop();
    expect((await upload(photo)).status).toBe(201);
  });
});
