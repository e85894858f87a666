import sharp from 'sharp';
import { ApiError } from '../base/errors.ts';

/** The picture types that are accepted. */
type PictureType = 'png' | 'jpeg' | 'webp' | 'gif';

/** Pixels over all frames. */
const pixelsMax = 40_000_000;
/** Decoders hold some rows at a time: of rows without end, some are gigabytes. */
const sideMax = 16_384;
/** Of a picture that is decoded as a whole: 40 megapixels of colour and transparency. */
const wholeBytesMax = 4 * pixelsMax;
const heavyPixels = 10_000_000;
/** Encoders write about ten scans. Thousands fit into 1 MB, and a decoder passes over the whole picture for each of them. */
const jpegScansMax = 32;

/** Judges by the first bytes alone, whatever the upload was called; `null` for everything that is not accepted. Rule: PICTURE-10. */
function typeOf(bytes: Buffer): PictureType | null {
  const start = bytes.toString('latin1', 0, 12);
  if (start.startsWith('\x89PNG\r\n\x1a\n')) return 'png';
  if (start.startsWith('\xff\xd8\xff')) return 'jpeg';
  if (/^GIF8[79]a/.test(start)) return 'gif';
  return start.startsWith('RIFF') && start.endsWith('WEBP') ? 'webp' : null;
}

/** Returns whether an upload begins like a PNG. */
export function isPng(bytes: Buffer): boolean {
  return typeOf(bytes) === 'png';
}

/** Counts as libjpeg reads: to the end mark, over filler and over what a segment holds. */
function jpegScans(bytes: Buffer): number {
  let scans = 0;
  let at = bytes.indexOf(0xff, 2);
  while (at >= 0 && at + 3 < bytes.length) {
    const marker = bytes.readUInt8(at + 1);
    if (marker === 0xd9) break;
    if (marker === 0xda) scans += 1;
    // 0xff00 is data and 0xffff filler; the others of these stand alone, without a length.
    const single = marker <= 0x01 || (marker >= 0xd0 && marker <= 0xd8);
    let next = at + 2;
    if (marker === 0xff) next = at + 1;
    else if (!single) next += bytes.readUInt16BE(at + 2);
    at = bytes.indexOf(0xff, next);
  }
  return scans;
}

/** Facts of the header that decoding needs. */
export interface PictureHeader {
  /** 16-bit colour with a profile of its own. */
  readonly deepWithProfile: boolean;
  /** So large, and of such a make that it is decoded as a whole rather than row by row: some hundred megabytes. */
  readonly heavy: boolean;
}

/**
 * Reads the header and decodes no pixel. Throws `pictureEmpty`, `pictureTypeUnsupported` (none of PNG, JPEG, WebP and
 * GIF by its content), `pictureTooLarge` (more than 40 megapixels, the frames of an animation added up; a side of more
 * than 16,384 pixels; more memory than such a picture takes) and `pictureUndecodable`. Rules: PICTURE-10, PICTURE-11, PICTURE-12.
 */
export async function readPictureHeader(bytes: Buffer): Promise<PictureHeader> {
  if (bytes.length === 0) throw new ApiError('pictureEmpty');
  const type = typeOf(bytes);
  if (type === null) throw new ApiError('pictureTypeUnsupported');
  // The limit of the library does not count frames: it is judged here.
  const header = await sharp(bytes, { limitInputPixels: false })
    .metadata()
    .catch(() => null);
  if (header === null) throw new ApiError('pictureUndecodable');
  const { width, height, pages = 1, space, hasProfile, isProgressive, channels, depth } = header;
  const isTooWide = width > sideMax || height > sideMax;
  if (isTooWide || width * height * pages > pixelsMax) throw new ApiError('pictureTooLarge');
  if (type === 'jpeg' && jpegScans(bytes) > jpegScansMax) throw new ApiError('pictureUndecodable');
  const isWhole = isProgressive || type === 'gif';
  const wholeBytes = width * height * channels * (depth === 'uchar' ? 1 : 2);
  if (isWhole && wholeBytes > wholeBytesMax) throw new ApiError('pictureTooLarge');
  const heavy = isWhole && width * height > heavyPixels;
  return { deepWithProfile: space === 'rgb16' && hasProfile, heavy };
}
