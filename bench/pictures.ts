import sharp from 'sharp';

const [width, height] = [4000, 3000];
/** As large as an upload may be, less what is left over by a quality that must be a whole number. */
const bytesMax = 1_040_000;

/** A file of an image. */
export interface Picture {
  readonly name: string;
  readonly type: string;
  readonly bytes: Buffer;
}

/** Soft shapes of `cells` × `cells`, `strength` apart: one layer of what a photograph has in many sizes. */
async function layer(cells: number, strength: number): Promise<Buffer> {
  const noise = { type: 'gaussian', mean: 128, sigma: strength } as const;
  const small = await sharp({ create: { width: cells, height: cells, channels: 3, background: '#808080', noise } })
    .png()
    .toBuffer();
  return sharp(small).resize(width, height, { fit: 'fill', kernel: 'cubic' }).raw().toBuffer();
}

async function photograph(): Promise<Buffer> {
  const [pixels, ...finer] = await Promise.all([layer(12, 60), layer(150, 30), layer(1200, 12)]);
  for (let at = 0; at < pixels.length; at++) {
    const value = finer.reduce((sum, each) => sum + (each[at] ?? 0) - 128, pixels[at] ?? 0);
    pixels[at] = Math.min(255, Math.max(0, value));
  }
  return pixels;
}

/** The largest of what `encode(1)` to `encode(most)` make, ever larger, that an upload may hold. */
async function largestFitting(encode: (step: number) => Promise<Buffer>, most: number): Promise<Buffer> {
  let [fits, tooLarge] = [0, most + 1];
  let fitting: Buffer | null = null;
  while (tooLarge - fits > 1) {
    const tried = Math.floor((fits + tooLarge) / 2);
    const bytes = await encode(tried);
    if (bytes.length > bytesMax) {
      tooLarge = tried;
    } else {
      fits = tried;
      fitting = bytes;
    }
  }
  if (fitting === null) throw new Error('not one picture is small enough to be uploaded');
  return fitting;
}

/**
 * Pictures of about one megabyte each, as people upload them: a photograph of 12 megapixels as JPEG and as WebP, and as
 * much of it as a PNG of that size holds.
 */
export async function makePictures(): Promise<readonly Picture[]> {
  const pixels = await photograph();
  const picture = () => sharp(pixels, { raw: { width, height, channels: 3 } });
  const png = (steps: number) =>
    picture()
      .resize(steps * 25)
      .png({ compressionLevel: 6 })
      .toBuffer();
  const [jpeg, webp, small] = await Promise.all([
    largestFitting((quality) => picture().jpeg({ quality }).toBuffer(), 100),
    largestFitting((quality) => picture().webp({ quality, effort: 0 }).toBuffer(), 100),
    largestFitting(png, 63),
  ]);
  return [
    { name: 'photo.jpg', type: 'image/jpeg', bytes: jpeg },
    { name: 'photo.png', type: 'image/png', bytes: small },
    { name: 'photo.webp', type: 'image/webp', bytes: webp },
  ];
}
