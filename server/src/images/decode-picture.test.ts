import sharp, { type Sharp } from 'sharp';
import { afterEach, describe, expect, it, vi } from 'vitest';
import {
  compressedZeros,
  jpegMarkers,
  madeAnimatedWebp,
  madeGif,
  madePng,
  noise,
  onePixel,
  plain,
  pngChunk,
} from '../../test/support/made-pictures.ts';
import { decodePicture } from './decode-picture.ts';
import { pictureCompressor } from './picture-compressor.ts';
import { readPictureHeader } from './picture-header.ts';

const pictures = pictureCompressor();
type Colour = readonly [number, number, number];

/** Width, height, channels and the pixel at the given place. */
async function pixelOf(bytes: Buffer, x = 0, y = 0): Promise<{ size: readonly number[]; pixel: Colour }> {
  const { data, raw } = await decodePicture(bytes, await readPictureHeader(bytes));
  const at = (y * raw.width + x) * raw.channels;
  return {
    size: [raw.width, raw.height, raw.channels],
    pixel: [data.readUInt8(at), data.readUInt8(at + 1), data.readUInt8(at + 2)],
  };
}

/** Colours pass through profiles and JPEG, which round. */
function expectNear(pixel: Colour, colour: Colour, tolerance = 4): void {
  const far = pixel.filter((value, channel) => Math.abs(value - (colour[channel] ?? 0)) > tolerance);
  expect(far, `${pixel.join()} instead of ${colour.join()}`).toEqual([]);
}

const red: Colour = [255, 0, 0];
const white: Colour = [255, 255, 255];
const names = new Map([
  ['255,0,0', 'R'],
  ['0,255,0', 'G'],
  ['0,0,255', 'B'],
  ['255,255,255', 'W'],
]);

/** Red and green over blue and white, twice as wide as high. */
function quarters(): Sharp {
  const part = (afterResponse: string, left: number, top: number) => ({
    input: { create: { width: 16, height: 8, channels: 3 as const, background: afterResponse } },
    left,
    top,
  });
  return plain(32, 16, '#f00').composite([part('#0f0', 16, 0), part('#00f', 0, 8), part('#fff', 16, 8)]);
}

describe('orientation (PICTURE-15)', () => {
  it.each([
    [1, 'RGBW'],
    [2, 'GRWB'],
    [3, 'WBGR'],
    [4, 'BWRG'],
    [5, 'RBGW'],
    [6, 'BRWG'],
    [7, 'WGBR'],
    [8, 'GWRB'],
  ])('EXIF orientation %i is applied', async (orientation, corners) => {
    const bytes = await quarters().withMetadata({ orientation }).png().toBuffer();
    expect((await sharp(bytes).metadata()).orientation).toBe(orientation);
    const { data, raw } = await decodePicture(bytes, await readPictureHeader(bytes));
    const [width, height] = orientation < 5 ? [32, 16] : [16, 32];
    expect(raw).toEqual({ width, height, channels: 3 });
    const corner = (x: number, y: number) => names.get(String([...data.subarray((y * width + x) * 3).subarray(0, 3)]));
    expect([corner(0, 0), corner(width - 1, 0), corner(0, height - 1), corner(width - 1, height - 1)].join('')).toBe(
      corners,
    );
  });

  it('is applied to what is reduced, too (PICTURE-16)', async () => {
    const bytes = await plain(4_096, 100, 'teal').withMetadata({ orientation: 6 }).jpeg().toBuffer();
    expect((await pixelOf(bytes)).size).toEqual([50, 2_048, 3]);
  });
});

describe('colours end in 8-bit sRGB', () => {
  const teal: Colour = [0, 128, 128];
  const plainTeal = () => plain(8, 8, '#008080');

  it.each([
    ['grey', () => plain(8, 8, '#777').toColourspace('b-w').jpeg(), [119, 119, 119], 4],
    ['grey of 16 bit', () => plain(8, 8, '#777').toColourspace('grey16').png(), [119, 119, 119], 4],
    ['16 bit', () => plainTeal().toColourspace('rgb16').png(), teal, 4],
    ['16 bit with a profile', () => plainTeal().toColourspace('rgb16').withIccProfile('srgb').png(), teal, 4],
    ['16 bit with a wide profile', () => plainTeal().toColourspace('rgb16').withIccProfile('p3').png(), teal, 4],
    ['a wide profile', () => plainTeal().withIccProfile('p3').png(), teal, 4],
    ['a wide profile in a JPEG', () => plainTeal().withIccProfile('p3').jpeg({ quality: 100 }), teal, 4],
    ['a palette', () => plainTeal().png({ palette: true }), teal, 4],
    ['CMYK', () => plain(8, 8, '#f00').toColourspace('cmyk').jpeg(), red, 45],
    ['CMYK with a profile', () => plain(8, 8, '#f00').withIccProfile('cmyk').jpeg(), red, 45],
  ] as const)('%s', async (...[, make, colour, tolerance]) => {
    const { size, pixel } = await pixelOf(await make().toBuffer());
    expect(size).toEqual([8, 8, 3]);
    expectNear(pixel, colour, tolerance);
  });

  it('the profile was worth applying: without it the colour is another', async () => {
    const bytes = await plainTeal().withIccProfile('p3').png().toBuffer();
    const stored = await sharp(bytes, { ignoreIcc: true }).raw().toBuffer();
    expect(stored.readUInt8(0)).toBeGreaterThan(40);
  });

  it('a damaged profile is passed over', async () => {
    const profile = pngChunk('iCCP', Buffer.concat([Buffer.from('x\0\0'), compressedZeros(400)]));
    expect((await pixelOf(onePixel(profile))).pixel).toEqual([200, 200, 200]);
  });
});

describe('one frame, on white (PICTURE-15)', () => {
  const clear = (alpha: number) =>
    sharp({ create: { width: 8, height: 8, channels: 4, background: { r: 0, g: 0, b: 0, alpha } } });

  it.each([
    ['PNG', () => clear(0).png(), 255],
    ['half transparent PNG', () => clear(0.5).png(), 127],
    ['PNG of 16 bit', () => clear(0).toColourspace('rgb16').png(), 255],
    ['grey PNG', () => clear(0).toColourspace('b-w').png(), 255],
    ['PNG palette', () => clear(0).png({ palette: true }), 255],
    ['WebP', () => clear(0).webp(), 255],
    ['GIF', () => clear(0).gif(), 255],
  ])('transparency of a %s', async (_, make, value) => {
    const { size, pixel } = await pixelOf(await make().toBuffer());
    expect(size).toEqual([8, 8, 3]);
    expectNear(pixel, [value, value, value], 1);
  });

  it.each(['gif', 'webp'] as const)('the first frame of an animated %s', async (type) => {
    const data = Buffer.concat([Buffer.alloc(16 * 16 * 3, Buffer.from([...red])), Buffer.alloc(16 * 16 * 3, 0x55)]);
    const frames = sharp(data, { raw: { width: 16, height: 32, channels: 3, pageHeight: 16 } });
    const bytes = await frames.toFormat(type, { loop: 0, delay: [100, 100] }).toBuffer();
    expect((await sharp(bytes).metadata()).pages).toBe(2);
    const { size, pixel } = await pixelOf(bytes, 8, 8);
    expect(size).toEqual([16, 16, 3]);
    expectNear(pixel, red, 8);
  });

  it('where an animated WebP leaves its canvas open', async () => {
    const { size, pixel } = await pixelOf(await madeAnimatedWebp(64, 2), 40, 40);
    expect(size).toEqual([64, 64, 3]);
    expect(pixel).toEqual(white);
  });
});

describe('size (PICTURE-16)', () => {
  it.each([
    [2_048, 2_048, 2_048, 2_048],
    [2_049, 1_000, 2_048, 1_000],
    [1_000, 4_096, 500, 2_048],
    [6_000, 6_000, 2_048, 2_048],
    [1, 16_384, 1, 2_048],
    [16_384, 1, 2_048, 1],
    [3, 2, 3, 2],
  ])('%i by %i becomes %i by %i', async (width, height, ...expected) => {
    const bytes = madePng(width, height, { rows: compressedZeros((Math.ceil(width / 8) + 1) * height), depth: 1 });
    expect((await pixelOf(bytes)).size.slice(0, 2)).toEqual(expected);
  });
});

describe('what is cut off or damaged: 400 (PICTURE-12)', () => {
  it.each([
    ['PNG', () => noise(40, 40, 30).png()],
    ['JPEG', () => noise(40, 40, 30).jpeg()],
    ['progressive JPEG', () => noise(40, 40, 30).jpeg({ progressive: true })],
    ['WebP', () => noise(40, 40, 30).webp()],
    ['lossless WebP', () => noise(40, 40, 30).webp({ lossless: true })],
    ['GIF', () => noise(40, 40, 30).gif()],
  ])('a %s that ends early', async (_, make) => {
    const bytes = await make().toBuffer();
    for (const part of [0.1, 0.3, 0.5, 0.7, 0.9]) {
      const cut = bytes.subarray(0, Math.floor(bytes.length * part));
      await expect(pictures.compress(cut, 'ada'), `${part}`).rejects.toMatchObject({
        errorName: 'pictureUndecodable',
        status: 400,
      });
    }
  });

  it('a JPEG and a PNG with damaged data', async () => {
    const jpeg = await noise(80, 80, 30).jpeg().toBuffer();
    const png = await noise(80, 80, 30).png().toBuffer();
    for (const bytes of [jpeg, png]) {
      bytes.fill(0xff, bytes.length - 900, bytes.length - 600);
      await expect(pictures.compress(bytes, 'ada')).rejects.toMatchObject({ errorName: 'pictureUndecodable' });
    }
  });
});

describe('what takes too long: 503 (PICTURE-17)', () => {
  afterEach(() => {
    vi.restoreAllMocks();
  });

  it('the limit of the library is not the fault of the picture', async () => {
    const picture = await noise(2_048, 2_048, 30).jpeg().toBuffer();
    const { timeout } = sharp.prototype;
    // A shorter limit than ours, on more work than any upload can ask for.
    vi.spyOn(sharp.prototype, 'timeout').mockImplementation(function (this: Sharp) {
      return timeout.call(this, { seconds: 1 }).median(99);
    });
    await expect(pictures.compress(picture, 'ada')).rejects.toMatchObject({
      errorName: 'overloaded',
      status: 503,
      headers: { 'retry-after': '5' },
      message: expect.not.stringMatching(/timeout|sharp|vips|%/i),
    });
    vi.restoreAllMocks();
    expect(jpegMarkers(await pictures.compress(picture, 'ada'))[1]).toBe('db');
  });
});

describe('nothing but the picture is stored (PICTURE-13, PICTURE-15)', () => {
  const script = Buffer.from('<script>alert(1)</script>PK\x03\x04%PDF-1.7', 'latin1');
  const comment = Buffer.concat([Buffer.from([0xff, 0xfe, 0, script.length + 2]), script]);
  const gps = { IFD0: { Copyright: 'somebody' }, IFD3: { GPSLatitudeRef: 'N', GPSLatitude: '51/1 30/1 0/1' } };
  const loaded = (picture: Sharp) =>
    picture.withExif(gps).withIccProfile('p3').withXmp('<x:xmpmeta>somewhere</x:xmpmeta>');

  async function commented(): Promise<Buffer> {
    const jpeg = await loaded(plain(40, 40, 'teal'))
      .jpeg()
      .toBuffer();
    return Buffer.concat([jpeg.subarray(0, 2), comment, jpeg.subarray(2), script]);
  }

  it.each([
    ['JPEG with place, profile, XMP, comment, and an archive behind it', commented],
    [
      'PNG with the same',
      async () =>
        Buffer.concat([
          await loaded(plain(40, 40, 'teal'))
            .png()
            .toBuffer(),
          script,
        ]),
    ],
    [
      'WebP with the same',
      async () =>
        Buffer.concat([
          await loaded(plain(40, 40, 'teal'))
            .webp()
            .toBuffer(),
          script,
        ]),
    ],
    ['PNG with a text', async () => onePixel(pngChunk('tEXt', Buffer.concat([Buffer.from('Comment\0'), script])))],
    ['GIF that is a script, too', async () => Buffer.concat([madeGif(0x2f2a, 1, 1), Buffer.from('*/=1;'), script])],
  ])('%s', async (_, make) => {
    const stored = await pictures.compress(await make(), 'ada');
    // Tables and size, then the only scan: no marker that could hold anything else.
    expect(jpegMarkers(stored).join(' ')).toMatch(/^d8( db)+ c0( c4)+ da$/);
    expect(stored.subarray(-2).toString('hex')).toBe('ffd9');
    expect(stored.toString('latin1')).not.toMatch(/script|alert|%PDF|Exif|ICC_PROFILE|xmp|some/i);
    const { format, space, channels, depth, exif, icc, xmp, iptc, orientation } = await sharp(stored).metadata();
    expect([format, space, channels, depth]).toEqual(['jpeg', 'srgb', 3, 'uchar']);
    expect([exif, icc, xmp, iptc, orientation]).toEqual([undefined, undefined, undefined, undefined, undefined]);
  });
});
