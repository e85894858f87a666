import sharp from 'sharp';
import type { Pixels } from './decode-picture.ts';

/** A stored picture has fewer bytes than this. */
const imageBytesLimit = 102_400;
const qualityMin = 10;
const qualityMax = 100;
/** Seven halvings find one of 91 qualities; two more pay for guesses that were wrong. Photographs take two or three. */
const encodesMax = 9;
/** Bytes of a photograph by pixel and coarseness; only a first guess, which the sizes met then correct. */
const photoBytes = 7;

/** libjpeg's factor on its quantization tables: 0 for quality 100, 500 for quality 10. */
function coarseness(quality: number): number {
  return quality < 50 ? 5_000 / quality : 200 - 2 * quality;
}

/** The quality that should just meet the limit: sizes are about inverse to coarseness, plus ten. */
function fittingQuality(bytesByCoarseness: number): number {
  const coarse = bytesByCoarseness / imageBytesLimit - 10;
  return Math.floor(coarse > 100 ? 5_000 / coarse : (200 - coarse) / 2);
}

function clamp(value: number, lowest: number, highest: number): number {
  return Math.min(Math.max(value, lowest), highest);
}

function encode({ data, raw }: Pixels, quality: number): Promise<Buffer> {
  return sharp(data, { raw }).jpeg({ quality }).toBuffer();
}

/** The JPEG of the highest quality under the limit, or the bytes at quality 10 when even those are too many. */
async function encodeFitting(pixels: Pixels): Promise<Buffer | number> {
  let fitting: Buffer | null = null;
  let lowestBytes = 0;
  let fits = qualityMin - 1;
  let tooLarge = qualityMax + 1;
  let quality = fittingQuality(photoBytes * pixels.raw.width * pixels.raw.height);
  for (let left = encodesMax - 1; tooLarge - fits > 1; left -= 1) {
    // Never so far to one side that the encodes left could not halve the rest.
    quality = clamp(quality, Math.max(fits + 1, tooLarge - 2 ** left), Math.min(tooLarge - 1, fits + 2 ** left));
    const encoded = await encode(pixels, quality);
    if (encoded.length < imageBytesLimit) {
      fitting = encoded;
      fits = quality;
    } else {
      lowestBytes = encoded.length;
      tooLarge = quality;
    }
    quality = fittingQuality(encoded.length * (coarseness(quality) + 10));
  }
  return fitting ?? lowestBytes;
}

/** Fewer pixels, by as much as the bytes are too many, and each side at least a tenth shorter. */
async function scaledDown({ data, raw }: Pixels, bytes: number): Promise<Pixels> {
  const width = Math.ceil(raw.width * Math.min(0.9, Math.sqrt(imageBytesLimit / bytes)));
  const smaller = await sharp(data, { raw }).resize(width).raw().toBuffer({ resolveWithObject: true });
  return {
    data: smaller.data,
    raw: { width: smaller.info.width, height: smaller.info.height, channels: raw.channels },
  };
}

/**
 * A fresh JPEG of fewer than 102,400 bytes with no metadata: of the highest quality from 100 to 10 that is small enough,
 * found with at most nine encodes. Where quality 10 is not small enough, the same again with fewer pixels, which always
 * comes to an end. Rules: PICTURE-13, PICTURE-14, PICTURE-17.
 */
export async function encodePicture(pixels: Pixels): Promise<Buffer> {
  const found = await encodeFitting(pixels);
  return typeof found === 'number' ? encodePicture(await scaledDown(pixels, found)) : found;
}
