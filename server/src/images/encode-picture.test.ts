import sharp, { type Sharp } from 'sharp';
import { describe, expect, it } from 'vitest';
import { noise, plain } from '../../test/support/made-pictures.ts';
import type { Pixels } from './decode-picture.ts';
import { encodePicture } from './encode-picture.ts';

const limit = 102_400;

async function pixelsOf(picture: Sharp): Promise<Pixels> {
  const { data, info } = await picture.raw().toBuffer({ resolveWithObject: true });
  return { data, raw: { width: info.width, height: info.height, channels: info.channels } };
}

/** Noise over a slope of colours: fine detail as in a photograph, more of it with a larger `sigma`. */
function photo(width: number, height: number, sigma: number): Promise<Pixels> {
  return pixelsOf(noise(width, height, sigma).blur(0.8));
}

const at = (pixels: Pixels, quality: number) => sharp(pixels.data, { raw: pixels.raw }).jpeg({ quality }).toBuffer();

/** The quality whose quantization tables a JPEG begins with. */
async function qualityOf(jpeg: Buffer): Promise<number> {
  const dot = await pixelsOf(plain(1, 1, 'teal'));
  for (let quality = 100; quality > 10; quality -= 1) {
    // Two tables of 64 values, each with its marker, length and number.
    if ((await at(dot, quality)).subarray(0, 140).equals(jpeg.subarray(0, 140))) return quality;
  }
  return 10;
}

/** Two pictures greyed from some byte on: just under the limit at that quality, and, greyed a byte later, just not. */
async function atTheLimit({ data, raw }: Pixels, quality: number): Promise<{ fits: Pixels; tooLarge: Pixels }> {
  const greyedFrom = (start: number) => ({ data: Buffer.from(data).fill(128, start), raw });
  let [fits, tooLarge] = [0, data.length];
  while (tooLarge - fits > 1) {
    const middle = Math.floor((fits + tooLarge) / 2);
    if ((await at(greyedFrom(middle), quality)).length < limit) fits = middle;
    else tooLarge = middle;
  }
  const { length } = await at(greyedFrom(tooLarge), quality);
  expect(length).toBeGreaterThanOrEqual(limit);
  expect(length).toBeLessThan(limit + 60);
  return { fits: greyedFrom(fits), tooLarge: greyedFrom(tooLarge) };
}

/** Encodes, with how many pieces of work the library had to do: it tells when one is queued and when one is done. */
async function counted(pixels: Pixels): Promise<{ stored: Buffer; works: number }> {
  let told = 0;
  const tell = () => {
    told += 1;
  };
  sharp.queue.on('change', tell);
  const stored = await encodePicture(pixels);
  sharp.queue.off('change', tell);
  return { stored, works: told / 2 };
}

describe('the quality is the highest that fits (PICTURE-13, PICTURE-14)', () => {
  it.each([
    [1, 1, 50],
    [100, 100, 60],
    [300, 200, 40],
    [400, 400, 20],
    [600, 400, 60],
    [900, 1_200, 10],
    [900, 1_200, 40],
    [2_048, 1_536, 1],
    [2_048, 1_536, 30],
    [1_400, 1_400, 60],
    [900, 1_200, 90],
    [2_048, 1_152, 12],
    [2_048, 50, 90],
  ])('%i by %i, noise %i', async (width, height, sigma) => {
    const pixels = await photo(width, height, sigma);
    const { stored, works } = await counted(pixels);
    expect(works).toBeGreaterThan(0);
    expect(works).toBeLessThanOrEqual(9);
    expect(stored.length).toBeLessThan(limit);

    const quality = await qualityOf(stored);
    expect((await at(pixels, quality)).equals(stored)).toBe(true);
    const next = quality < 100 ? (await at(pixels, quality + 1)).length : limit;
    expect(next).toBeGreaterThanOrEqual(limit);
  });

  it('what is a few bytes too large at quality 100 does not keep it', async () => {
    const { fits, tooLarge } = await atTheLimit(await photo(400, 300, 60), 100);
    expect(await qualityOf(await encodePicture(fits))).toBe(100);
    expect(await qualityOf(await encodePicture(tooLarge))).toBe(99);
  });

  it('a smooth picture keeps quality 100', async () => {
    const pixels = await pixelsOf(plain(2_048, 2_048, 'teal'));
    expect(await encodePicture(pixels)).toEqual(await at(pixels, 100));
  });
});

describe('where quality 10 is too large, the picture gets smaller (PICTURE-14)', () => {
  it('and only there', async () => {
    const { fits, tooLarge } = await atTheLimit(await pixelsOf(noise(1_200, 1_000, 120)), 10);
    const kept = await encodePicture(fits);
    expect([await qualityOf(kept), (await sharp(kept).metadata()).width]).toEqual([10, 1_200]);
    const smaller = await encodePicture(tooLarge);
    expect(smaller.length).toBeLessThan(limit);
    expect((await sharp(smaller).metadata()).width).toBe(1_080);
  });

  it.each([
    [2_048, 2_048],
    [2_048, 1_024],
    [700, 2_048],
  ])('%i by %i of nothing but noise', async (width, height) => {
    const pixels = await pixelsOf(noise(width, height, 120));
    expect((await at(pixels, 10)).length).toBeGreaterThan(limit);
    const { stored, works } = await counted(pixels);
    expect(works).toBeLessThanOrEqual(2 * 9 + 1);
    expect(stored.length).toBeLessThan(limit);
    // Not smaller than it has to be.
    expect(stored.length).toBeGreaterThan(limit * 0.6);
    const made = await sharp(stored).metadata();
    expect(made.width).toBeLessThan(width);
    expect(made.width / made.height).toBeCloseTo(width / height, 1);
  });
});
