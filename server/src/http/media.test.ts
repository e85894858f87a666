import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { bytesResponse, isUpload, responseForms, uploadedFile } from './media.ts';

const words = z.object({ errorMessage: z.string() });

describe('forms of an answer', () => {
  it('JSON of a schema', () => {
    expect(responseForms(words)).toEqual({ mediaTypes: [], json: words });
    const either = z.union([z.array(z.string()), words]);
    expect(responseForms(either)).toEqual({ mediaTypes: [], json: either });
  });

  it('bytes of a media type', () => {
    expect(responseForms(bytesResponse('image/jpeg'))).toEqual({ mediaTypes: ['image/jpeg'], json: undefined });
  });

  it('either, in whatever order they are declared', () => {
    const picture = bytesResponse('image/jpeg');
    for (const either of [z.union([picture, words]), z.union([words, picture])]) {
      expect(responseForms(either)).toEqual({ mediaTypes: ['image/jpeg'], json: words });
    }
  });

  it('nothing', () => {
    expect(responseForms(z.undefined())).toEqual({ mediaTypes: [], json: undefined });
  });

  it('a schema is of bytes because it was made so, not by what it takes', () => {
    const similar = z.custom<Uint8Array>((given) => given instanceof Uint8Array);
    expect(responseForms(similar)).toEqual({ mediaTypes: [], json: similar });
    expect(responseForms(bytesResponse('image/png')).mediaTypes).toEqual(['image/png']);
  });
});

describe('an uploaded file', () => {
  it('is told from other bodies', () => {
    expect([uploadedFile(), words, bytesResponse('image/jpeg'), undefined].map(isUpload)).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });

  it('is bytes, and is not optional', () => {
    const schema = uploadedFile();
    const given = [new Uint8Array(), Buffer.from('x'), undefined, null, 'x', [1], {}];
    expect(given.map((one) => schema.safeParse(one).success)).toEqual([true, true, false, false, false, false, false]);
  });
});
