import { deflateSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { onePixel, pngChunk } from '../../test/support/made-pictures.ts';
import { withoutTexts } from './png-chunks.ts';

const texts = ['tEXt', 'zTXt', 'iTXt'].map((type) => pngChunk(type, Buffer.from('Comment\0\0hidden')));

describe('withoutTexts (PICTURE-15)', () => {
  it('leaves a picture without texts as it is', () => {
    expect(withoutTexts(onePixel())).toEqual(onePixel());
  });

  it('takes every text away, wherever it stands, and nothing else', () => {
    const kept = pngChunk('pHYs', Buffer.alloc(9));
    const [text, packed, international] = texts as [Buffer, Buffer, Buffer];
    expect(withoutTexts(onePixel(text, kept, packed, international))).toEqual(onePixel(kept));
    const afterTheEnd = Buffer.concat([onePixel(), packed]);
    expect(withoutTexts(afterTheEnd)).toEqual(onePixel());
  });

  it('takes text away that would unpack to a thousand times its size', () => {
    const bomb = pngChunk('zTXt', Buffer.concat([Buffer.from('a\0\0'), deflateSync(Buffer.alloc(9_000_000))]));
    const png = onePixel(...Array.from({ length: 50 }, () => bomb));
    expect(withoutTexts(png)).toEqual(onePixel());
  });

  it('leaves what is cut off, or says wrong lengths, for the decoder to judge', () => {
    const png = onePixel(...texts);
    fc.assert(
      fc.property(fc.nat(png.length), fc.nat(255), fc.nat(png.length - 1), (length, value, place) => {
        const damaged = Buffer.from(png);
        damaged[place] = value;
        const cut = damaged.subarray(0, length);
        const left = withoutTexts(cut);
        expect(left.length).toBeLessThanOrEqual(cut.length);
        expect(left.subarray(0, 8)).toEqual(cut.subarray(0, 8));
      }),
      { numRuns: 2_000 },
    );
  });
});
