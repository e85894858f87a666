import { deflateSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { compressedZeros, madePng, onePixel, pngChunk } from '../support/made-pictures.ts';
import { type Client, TestApp } from '../support/test-app.ts';

const mebibyte = 1_048_576;
const rgba = { depth: 16, colour: 6 } as const;

describe('I1: small files that take gigabytes', () => {
  let app: TestApp;
  let admin: Client;

  beforeAll(async () => {
    app = await TestApp.start();
    admin = await app.setUp();
    // What the library needs in any case is not to be counted.
    await admin.upload('/users/dp', new Uint8Array(onePixel()));
  });
  afterAll(() => app.close());

  /** The answer, and by how much the process grew while it came. */
  async function send(png: Buffer) {
    const before = process.memoryUsage.rss();
    let grown = 0;
    const look = () => {
      grown = Math.max(grown, process.memoryUsage.rss() - before);
    };
    const timer = setInterval(look, 5);
    const response = await admin.upload('/users/dp', new Uint8Array(png));
    clearInterval(timer);
    look();
    return { ...response, grown };
  }

  it.each([
    [
      '10,000,000 × 4, 16 bit, interlaced',
      madePng(10_000_000, 4, { ...rgba, interlaced: true, rows: compressedZeros(1) }),
    ],
    ['40,000,000 × 1', madePng(40_000_000, 1, { colour: 2, rows: compressedZeros(1) })],
    ['1 × 40,000,000', madePng(1, 40_000_000, { colour: 2, rows: compressedZeros(1) })],
    ['16,385 × 1', madePng(16_385, 1, { rows: compressedZeros(16_386) })],
    [
      '6,324 × 6,324, 16 bit, interlaced',
      madePng(6_324, 6_324, { ...rgba, interlaced: true, rows: compressedZeros(1) }),
    ],
  ])('400: %s, before anything is decoded (PICTURE-12)', async (_, png) => {
    const { status, body, grown } = await send(png);
    expect([status, body.message]).toEqual([
      400,
      'The picture is too large: at most 40 megapixels over all its frames, and 16,384 pixels a side',
    ]);
    expect(grown).toBeLessThan(100 * mebibyte);
  });

  it('201: 16,384 pixels a side are taken (PICTURE-16)', async () => {
    const { status, grown } = await send(madePng(16_384, 4, { rows: compressedZeros(4 * 16_385) }));
    expect(status).toBe(201);
    expect(grown).toBeLessThan(100 * mebibyte);
  });

  it('201: a hundred packed texts of 9 MB are not unpacked (PICTURE-15)', async () => {
    const packed = Buffer.concat([Buffer.from('Comment\0\0'), deflateSync(Buffer.alloc(9_000_000))]);
    const text = pngChunk('zTXt', packed);
    const { status, grown } = await send(onePixel(...Array.from({ length: 100 }, () => text)));
    expect(status).toBe(201);
    expect(grown).toBeLessThan(100 * mebibyte);
  });
});
