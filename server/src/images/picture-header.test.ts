import { deflateSync } from 'node:zlib';
import sharp from 'sharp';
import { describe, expect, it } from 'vitest';
import {
  compressedZeros,
  jpegOfScans,
  madeAnimatedWebp,
  madeGif,
  madePng,
  onePixel,
  plain,
  pngChunk,
} from '../../test/support/made-pictures.ts';
import { pictureCompressor } from './picture-compressor.ts';
import { readPictureHeader } from './picture-header.ts';

const pictures = pictureCompressor();
const megabyte = 1_048_576;

/** The refusal that an upload ends in; an unexpected error is thrown on. */
async function refused(bytes: Uint8Array): Promise<string> {
  const error = await pictures.compress(bytes, 'ada').then(
    () => null,
    (reason: unknown) => reason,
  );
  if (error === null) return 'accepted';
  expect(error).toMatchObject({ name: 'ApiError' });
  const { errorName, message } = error as { errorName: string; message: string };
  expect(message).not.toMatch(/vips|sharp|png:|buffer|libpng|\n/i);
  return errorName;
}

const text = (content: string) => Buffer.from(content, 'latin1');
const png = text('\x89PNG\r\n\x1a\n');

describe('the type is judged by content (PICTURE-10)', () => {
  it.each(['png', 'jpeg', 'webp', 'gif'] as const)('%s is accepted', async (type) => {
    expect(await refused(await plain(20, 20, 'teal').toFormat(type).toBuffer())).toBe('accepted');
  });

  it.each([
    ['SVG', text('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')],
    ['SVG after a declaration', text('<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>')],
    ['HTML', text('<!doctype html><script>alert(1)</script>')],
    ['text', text('hello')],
    ['PDF', text('%PDF-1.7\n1 0 obj')],
    ['PDF before a PNG', Buffer.concat([text('%PDF-1.7\n'), onePixel()])],
    ['script before a GIF', Buffer.concat([text('/*'), madeGif(1, 1, 1)])],
    ['BMP', text(`BM${'\0'.repeat(60)}`)],
    ['icon', text('\0\0\x01\0\x01\0')],
    ['PPM', text('P6 1 1 255\nabc')],
    ['FITS', text('SIMPLE  =                    T')],
    ['Radiance', text('#?RADIANCE\n')],
    ['libvips', text(`\xb6\xa6\xf2\x08${'\0'.repeat(80)}`)],
    ['JPEG XL', text('\xff\x0a\xfa\x7f')],
    ['JPEG 2000', text('\0\0\0\x0cjP  \r\n\x87\n')],
    ['Photoshop', text('8BPS\0\x01')],
    ['ZIP', text('PK\x03\x04')],
    ['sound in RIFF', text('RIFF\x24\0\0\0WAVEfmt ')],
    ['half a signature', png.subarray(0, 7)],
    ['one byte', text('\xff')],
  ])('%s: 415', async (_, bytes) => {
    expect(await refused(bytes)).toBe('pictureTypeUnsupported');
  });

  it('TIFF and AVIF, which the library could decode: 415, and their decoders are off', async () => {
    const svg = text('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>');
    const tiff = await plain(9, 9, 'red').tiff().toBuffer();
    const avif = await plain(9, 9, 'red').avif().toBuffer();
    for (const bytes of [svg, tiff, avif]) {
      expect(await refused(bytes)).toBe('pictureTypeUnsupported');
      await expect(sharp(bytes).metadata()).rejects.toThrow('unsupported image format');
    }
  });

  it('an empty upload: 400 (PICTURE-11)', async () => {
    expect(await refused(new Uint8Array())).toBe('pictureEmpty');
  });
});

describe('what cannot be decoded: 400 (PICTURE-12)', () => {
  it.each([
    ['PNG', png],
    ['JPEG', text('\xff\xd8\xff')],
    ['GIF', text('GIF89a')],
    ['WebP', text('RIFF\x04\0\0\0WEBP')],
  ])('%s: a signature before a script', async (_, signature) => {
    expect(await refused(Buffer.concat([signature, text('=1;alert(1)//<script>')]))).toBe('pictureUndecodable');
  });

  it.each([
    ['no width', 0, 5],
    ['no height', 5, 0],
    ['more than there can be', 0x7fffffff, 0x7fffffff],
  ])('PNG with %s', async (_, width, height) => {
    expect(await refused(madePng(width, height, { rows: deflateSync(Buffer.alloc(6)) }))).toBe('pictureUndecodable');
  });

  it('GIF without a frame', async () => {
    expect(await refused(madeGif(5, 5, 0))).toBe('pictureUndecodable');
  });

  it('a JPEG of more scans than any encoder writes, but not for what its metadata holds', async () => {
    expect(await refused(jpegOfScans(800, 32))).toBe('accepted');
    expect(await refused(jpegOfScans(800, 33))).toBe('pictureUndecodable');
    // 33 times what looks like a scan, in a comment and after the end.
    const scans = Buffer.from('ffda00080101000000003f00'.repeat(33), 'hex');
    const comment = Buffer.concat([Buffer.from([0xff, 0xfe, 0, scans.length % 256, 1]), scans]);
    comment.writeUInt16BE(comment.length - 2, 2);
    const jpeg = await plain(9, 9, 'red').jpeg().toBuffer();
    const odd = Buffer.concat([jpeg.subarray(0, 2), comment, jpeg.subarray(2), scans]);
    expect(await refused(odd)).toBe('accepted');
  });
});

describe('bombs are refused by their header (PICTURE-12)', () => {
  it('at the limit a picture is decoded, a row above it is not', async () => {
    expect(await refused(madePng(8_000, 5_000, { rows: compressedZeros(1_001 * 5_000), depth: 1 }))).toBe('accepted');
    expect(await refused(madePng(8_000, 5_001, { rows: compressedZeros(1_001 * 5_001), depth: 1 }))).toBe(
      'pictureTooLarge',
    );
  });

  it('frames are added up', async () => {
    expect(await refused(madeGif(1_000, 1_000, 40))).toBe('accepted');
    expect(await refused(madeGif(1_000, 1_000, 41))).toBe('pictureTooLarge');
  });

  const lie = deflateSync(Buffer.alloc(100));
  it.each([
    ['20,000² of one bit', () => madePng(20_000, 20_000, { rows: compressedZeros(2_501 * 20_000), depth: 1 })],
    ['10,000² in colour', () => madePng(10_000, 10_000, { rows: compressedZeros(30_001 * 10_000), colour: 2 })],
    ['a lying header, too large', () => madePng(20_000, 20_000, { rows: lie, colour: 2 })],
    ['a lying header, not too large', () => madePng(6_000, 6_000, { rows: lie, colour: 2 }), 'pictureUndecodable'],
    ['a GIF of 143 frames', () => madeGif(1_000, 1_000, 143)],
    ['a GIF of 45,000 frames of one pixel', () => madeGif(1, 1, 45_000), 'accepted'],
    ['an animated WebP of 11 frames', () => madeAnimatedWebp(2_000, 11)],
    ['an animated WebP of 10 frames', () => madeAnimatedWebp(2_000, 10), 'accepted'],
    ['a JPEG of 9,000 scans', () => jpegOfScans(6_320, 9_000), 'pictureUndecodable'],
    ['a tall line', () => madePng(1, 16_384, { rows: compressedZeros(2 * 16_384) }), 'accepted'],
    ['a taller line', () => madePng(1, 16_385, { rows: compressedZeros(2 * 16_385) })],
    ['a wide line', () => madePng(16_384, 1, { rows: compressedZeros(16_385) }), 'accepted'],
    ['a wider line', () => madePng(16_385, 1, { rows: compressedZeros(16_386) })],
    ['900 MB in a comment', () => onePixel(zipped('zTXt', 'Comment\0\0', 900)), 'accepted'],
    ['900 MB of XMP', () => onePixel(zipped('iTXt', 'XML:com.adobe.xmp\0\x01\0\0\0', 900)), 'accepted'],
    ['a profile of 200 MB', () => onePixel(zipped('iCCP', 'x\0\0', 200)), 'accepted'],
  ])('%s', async (_, make, expected = 'pictureTooLarge') => {
    const bytes = await make();
    expect(bytes.length).toBeLessThan(1.01 * megabyte);
    const rssBefore = process.memoryUsage().rss;
    const peakBefore = process.resourceUsage().maxRSS * 1_024;
    const startedMs = performance.now();
    expect(await refused(bytes)).toBe(expected);
    // Generous: it takes a few milliseconds for a refusal by header.
    expect(performance.now() - startedMs).toBeLessThan(3_000);
    const peak = process.resourceUsage().maxRSS * 1_024;
    expect(peak > peakBefore ? peak - rssBefore : 0).toBeLessThan(150 * megabyte);
  });
});

describe('more than 10 megapixels that are decoded as a whole (PICTURE-17)', () => {
  const jpeg = (height: number, progressive: boolean) => plain(4_000, height, 'teal').jpeg({ progressive }).toBuffer();
  const gif = (height: number) => plain(4_000, height, 'teal').gif().toBuffer();
  const png = (height: number, progressive: boolean) =>
    plain(4_000, height, 'teal').png({ progressive, compressionLevel: 1 }).toBuffer();

  it.each([
    ['a progressive JPEG', true, () => jpeg(2_501, true)],
    ['a progressive JPEG of 10 megapixels', false, () => jpeg(2_500, true)],
    ['another JPEG', false, () => jpeg(2_501, false)],
    ['an interlaced PNG', true, () => png(2_501, true)],
    ['an interlaced PNG of 10 megapixels', false, () => png(2_500, true)],
    ['another PNG', false, () => png(2_501, false)],
    ['a GIF', true, () => gif(2_501)],
    ['a GIF of 10 megapixels', false, () => gif(2_500)],
    ['a GIF of many small frames', false, () => madeGif(1_000, 1_000, 40)],
    ['a WebP', false, () => plain(4_000, 2_501, 'teal').webp().toBuffer()],
  ])('%s: %s', async (_, heavy, make) => {
    expect(await readPictureHeader(await make())).toMatchObject({ heavy });
  });
});

function zipped(type: string, head: string, megabytes: number): Buffer {
  return pngChunk(type, Buffer.concat([text(head), compressedZeros(megabytes * megabyte)]));
}
