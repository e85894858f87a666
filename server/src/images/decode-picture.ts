import sharp, { type Raw } from 'sharp';
import { ApiError } from '../base/errors.ts';
import type { PictureHeader } from './picture-header.ts';

/** The longest side of a stored picture, in pixels. */
const sideMax = 2_048;
/** Ordinary pictures take 0.1 s of a core, the worst that the header lets through about 3 s; others may want the core. */
const decodeSecondsMax = 20;

/** A decoded picture: rows of 8-bit sRGB, without transparency. */
export interface Pixels {
  readonly data: Buffer;
  /** Width, height and channels, as sharp takes them. */
  readonly raw: Raw;
}

/** Out of time is our fault and may be otherwise the next time; anything else is the picture's. */
function errorOf(error: unknown): ApiError {
  const isTimeout = error instanceof Error && error.message.startsWith('timeout');
  return isTimeout
    ? new ApiError('overloaded', { headers: { 'retry-after': '5' } })
    : new ApiError('pictureUndecodable');
}

/**
 * Decodes once: the first frame, turned as EXIF says, on white, in sRGB by its colour profile, its longest side at most
 * 2,048 pixels. Never enlarges. Throws `pictureUndecodable` for what turns out damaged or cut off, and `overloaded` where
 * it takes too long. Rules: PICTURE-12, PICTURE-15, PICTURE-16, PICTURE-17.
 */
export async function decodePicture(bytes: Buffer, { deepWithProfile }: PictureHeader): Promise<Pixels> {
  const picture = sharp(bytes, { autoOrient: true, failOn: 'warning' })
    .timeout({ seconds: decodeSecondsMax })
    .flatten({ background: '#ffffff' })
    .resize(sideMax, sideMax, { fit: 'inside', withoutEnlargement: true });
  // sharp works on 16-bit colour in Display P3 where there is a profile, and stays there unless a profile is asked for.
  if (deepWithProfile) picture.withIccProfile('srgb', { attach: false });
  const decoded = await picture
    .toColourspace('srgb')
    .raw()
    .toBuffer({ resolveWithObject: true })
    .catch((error: unknown) => {
      throw errorOf(error);
    });
  const { width, height, channels } = decoded.info;
  return { data: decoded.data, raw: { width, height, channels } };
}
