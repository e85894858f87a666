import { describe, expect, it } from 'vitest';
import { tries } from '../../test/support/effort.ts';
import { jpegMarkers, jpegOfScans, madeAnimatedWebp, madeGif, noise } from '../../test/support/made-pictures.ts';
import { ApiError } from '../base/errors.ts';
import { pictureCompressor } from './picture-compressor.ts';

const pictures = pictureCompressor();
const mutated = tries(10_000);
const together = 20;
const second = 1_000;

/** Repeatable chance (mulberry32): whole numbers from 0 to below `below`. */
function chance(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % below;
  };
}

type Chance = ReturnType<typeof chance>;
type Mutation = (bytes: Buffer, random: Chance) => Buffer;

const mutations: readonly Mutation[] = [
  (bytes, random) => bytes.fill(random(256), random(bytes.length)).subarray(0),
  (bytes, random) => bytes.subarray(0, random(bytes.length)),
  (bytes, random) => {
    for (let count = 1 + random(8); count > 0; count -= 1) bytes.writeUInt8(random(256), random(bytes.length));
    return bytes;
  },
  // Headers are where sizes and lengths are.
  (bytes, random) => {
    const at = random(Math.min(200, bytes.length));
    bytes.writeUInt8(bytes.readUInt8(at) ^ (1 << random(8)), at);
    return bytes;
  },
  (bytes, random) => bytes.fill([0, 0x7f, 0x80, 0xff][random(4)] ?? 0, random(bytes.length)).fill(0, bytes.length - 1),
  (bytes, random) => {
    const at = random(bytes.length);
    bytes.fill(0xff, at, Math.min(bytes.length, at + 1 + random(4)));
    return bytes;
  },
  (bytes, random) => {
    const [from, to] = [random(bytes.length), random(bytes.length)];
    return Buffer.concat([bytes.subarray(0, to), bytes.subarray(from)]);
  },
];

async function originals(): Promise<Buffer[]> {
  const small = () => noise(24, 17, 40);
  const clear = () => small().ensureAlpha(0.4);
  const loaded = () => small().withMetadata({ orientation: 6 }).withIccProfile('p3');
  const made = [
    small().png(),
    small().png({ palette: true }),
    small().png({ progressive: true }),
    clear().toColourspace('rgb16').png(),
    loaded().png(),
    small().jpeg(),
    small().jpeg({ progressive: true }),
    small().toColourspace('b-w').jpeg(),
    loaded().jpeg(),
    small().webp(),
    clear().webp(),
    clear().webp({ lossless: true }),
    loaded().webp(),
    small().gif(),
    clear().gif(),
  ].map((picture) => picture.toBuffer());
  const cheap = [...(await Promise.all(made)), await madeAnimatedWebp(20, 3), madeGif(9, 9, 3), jpegOfScans(40, 5)];
  // Setting up the conversion from CMYK takes 0.1 s, so there is less of it.
  const cmyk = await small().toColourspace('cmyk').jpeg().toBuffer();
  return [...cheap, ...cheap, ...cheap, cmyk];
}

describe('10,000 damaged pictures', () => {
  it('each is stored whole or refused, and the process lives (PICTURE-12, PICTURE-13)', {
    timeout: 90 * second,
  }, async () => {
    const whole = await originals();
    const random = chance(20_261_128);
    const ends = new Map<string, number>();
    const faults: unknown[] = [];

    async function judge(bytes: Buffer, sender: string): Promise<string> {
      try {
        const stored = await pictures.compress(bytes, sender);
        if (stored.length >= 102_400 || jpegMarkers(stored)[1] !== 'db') faults.push(stored.length);
        return 'accepted';
      } catch (error) {
        if (error instanceof ApiError) return error.errorName;
        faults.push(error);
        return 'fault';
      }
    }

    function damaged(): Buffer {
      const copy = Buffer.from(whole[random(whole.length)] ?? []);
      return mutations[random(mutations.length)]?.(copy, random) ?? copy;
    }

    for (let done = 0; done < mutated; done += together) {
      const batch = Array.from({ length: together }, (_, place) => judge(damaged(), `sender${place % 4}`));
      for (const end of await Promise.all(batch)) ends.set(end, (ends.get(end) ?? 0) + 1);
    }
    expect(faults).toEqual([]);
    // Both ends have to be met often, or the damage proves nothing.
    expect(ends.get('accepted')).toBeGreaterThan(mutated / 20);
    expect(ends.get('pictureUndecodable')).toBeGreaterThan(mutated / 5);
    expect(ends.get('fault')).toBeUndefined();
  });
});
