import pLimit from 'p-limit';
import sharp from 'sharp';
import { ApiError, refuseTooMany } from '../base/errors.ts';
import { KeyedCounter } from '../base/keyed-counter.ts';
import { inScope } from '../base/scope.ts';
import { decodePicture } from './decode-picture.ts';
import { encodePicture } from './encode-picture.ts';
import { isPng, type PictureHeader, readPictureHeader } from './picture-header.ts';
import { withoutTexts } from './png-chunks.ts';

/** Each holds one of the four threads that password hashes and file access share. */
const concurrent = 2;
/** Some seconds of work; later uploads get a 503. */
const waitingMax = 32;
/** Limit for one user, who cannot fill the queue for all. */
const ofOneMax = 10;
const retryAfterSeconds = 5;

/** Turns uploads into the pictures that are stored, two at a time and off the event loop. */
export interface PictureCompressor {
  /**
   * A fresh JPEG in sRGB of fewer than 102,400 bytes, the longest side at most 2,048 pixels, upright, on white, without
   * any metadata. Throws `pictureEmpty`, `pictureTypeUnsupported`, `pictureTooLarge`, `pictureUndecodable`, and when too
   * many wait, `tooManyRequests` where those are the sender's own, else `overloaded`. Rules: PICTURE-10 to PICTURE-17.
   * @param sender such as a user id
   */
  compress(bytes: Uint8Array, sender: string): Promise<Buffer>;
}

/** Only these decoders exist for this process from now on. Rule: PICTURE-10. */
function enableDecoders(): void {
  sharp.block({ operation: ['VipsForeignLoad'] });
  sharp.unblock({
    operation: ['Png', 'Jpeg', 'Webp', 'Nsgif'].map((type) => `VipsForeignLoad${type}`),
  });
}

/** Makes the compressor of this process, and sets the picture library up for it. Rule: PICTURE-17. */
export function pictureCompressor(): PictureCompressor {
  enableDecoders();
  sharp.concurrency(1);
  sharp.cache(false);
  const limit = pLimit(concurrent);
  // Two of those that take hundreds of megabytes never meet.
  const heavyLimit = pLimit(1);
  const senders = new KeyedCounter('pictures');

  async function convert(upload: Buffer, header: PictureHeader): Promise<Buffer> {
    return encodePicture(await decodePicture(upload, header));
  }

  async function work(upload: Buffer): Promise<Buffer> {
    const done = await limit(async () => {
      const header = await readPictureHeader(upload);
      return header.heavy ? header : convert(upload, header);
    });
    if (Buffer.isBuffer(done)) return done;
    // Waits outside of the two places, which are for those that can go on.
    return heavyLimit(() => limit(() => convert(upload, done)));
  }

  return {
    compress: (bytes, sender) =>
      inScope(async (scope) => {
        if (senders.of(sender) >= ofOneMax) throw refuseTooMany(ofOneMax, retryAfterSeconds);
        if (limit.pendingCount + heavyLimit.pendingCount >= waitingMax) {
          throw new ApiError('overloaded', { headers: { 'retry-after': String(retryAfterSeconds) } });
        }
        senders.take(scope, sender);
        const given = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
        return work(isPng(given) ? withoutTexts(given) : given);
      }),
  };
}
