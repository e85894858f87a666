import { setImmediate } from 'node:timers/promises';
import sharp from 'sharp';
import { describe, expect, it } from 'vitest';
import { noise, onePixel, plain } from '../../test/support/made-pictures.ts';
import { pictureCompressor } from './picture-compressor.ts';

const pictures = pictureCompressor();
/** Eight senders in turn: none of them sends too much. */
const senderOf = (place: number) => `sender${place % 8}`;
const photo = await noise(1_500, 1_000, 30).jpeg().toBuffer();

const tooManyOfOne = {
  errorName: 'tooManyRequests',
  status: 429,
  headers: { 'retry-after': '5', 'ratelimit-limit': '10' },
};
const overloaded = { errorName: 'overloaded', status: 503, headers: { 'retry-after': '5' } };

/** Returns the results of `look` at each turn of the event loop until the work was done. */
async function meanwhile(work: Promise<unknown>, look: () => number): Promise<number[]> {
  const seen: number[] = [];
  const state = { done: false };
  const ended = work.finally(() => {
    state.done = true;
  });
  while (!state.done) {
    seen.push(look());
    await setImmediate();
  }
  await ended;
  return seen;
}

describe('two pictures at a time, off the event loop (PICTURE-17)', () => {
  it('never more, and two where there is more than one', async () => {
    const all = Promise.all(Array.from({ length: 12 }, (_, place) => pictures.compress(photo, senderOf(place))));
    const seen = await meanwhile(all, () => sharp.counters().process);
    expect(Math.max(...new Set(seen))).toBe(2);
    for (const stored of await all) expect(stored.length).toBeLessThan(102_400);
  });

  it('other work goes on meanwhile', async () => {
    expect((await meanwhile(pictures.compress(photo, 'ada'), () => 0)).length).toBeGreaterThan(100);
  });

  it('anyone who would be the 33rd to wait is told to come again, and the line empties', async () => {
    const responses = await Promise.allSettled(
      Array.from({ length: 40 }, (_, place) => pictures.compress(photo, senderOf(place))),
    );
    const refused = responses.flatMap((response) => (response.status === 'rejected' ? [response.reason] : []));
    expect(responses.slice(0, 34).every(({ status }) => status === 'fulfilled')).toBe(true);
    expect(refused).toHaveLength(6);
    for (const reason of refused) expect(reason).toMatchObject(overloaded);
    expect((await pictures.compress(photo, 'ada')).length).toBeLessThan(102_400);
  });

  it('a refused picture gives its place back', async () => {
    for (let count = 0; count < 12; count += 1) {
      await expect(pictures.compress(Buffer.from('text'), 'ada')).rejects.toMatchObject({ status: 415 });
    }
    expect((await pictures.compress(photo, 'ada')).length).toBeLessThan(102_400);
  });

  it('takes a part of a larger buffer for what it is', async () => {
    const within = Buffer.concat([Buffer.from('abc'), photo]);
    const part = new Uint8Array(within.buffer, within.byteOffset + 3, photo.length);
    expect(await pictures.compress(part, 'ada')).toEqual(await pictures.compress(photo, 'ada'));
  });
});

describe('10 pictures of one sender (PICTURE-17)', () => {
  it('the 11th is told to come again, anyone who else sends is served, and afterwards so is the sender', async () => {
    const own = Array.from({ length: 12 }, () => pictures.compress(photo, 'ada'));
    const others = Array.from({ length: 10 }, () => pictures.compress(photo, 'grace'));
    const statuses = (await Promise.allSettled(own)).map(({ status }) => status);
    expect(statuses).toEqual([...Array(10).fill('fulfilled'), 'rejected', 'rejected']);
    for (const late of own.slice(10)) await expect(late).rejects.toMatchObject(tooManyOfOne);
    for (const stored of await Promise.all(others)) expect(stored.length).toBeLessThan(102_400);
    const again = Array.from({ length: 10 }, () => pictures.compress(onePixel(), 'ada'));
    expect(await Promise.all(again)).toHaveLength(10);
  });
});

describe('pictures that are decoded as a whole (PICTURE-17)', async () => {
  const heavy = await plain(4_000, 2_600, 'teal').jpeg({ progressive: true }).toBuffer();

  it('never run two at a time, also when one of them is damaged', async () => {
    const sent = [heavy, heavy.subarray(0, heavy.length / 2), heavy, heavy];
    const all = Promise.allSettled(sent.map((bytes) => pictures.compress(bytes, 'ada')));
    const seen = await meanwhile(all, () => sharp.counters().process);
    expect(Math.max(...new Set(seen))).toBe(1);
    const statuses = (await all).map(({ status }) => status);
    expect(statuses).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled']);
  });

  it('let ordinary ones go on beside, and ahead of those that wait for one another', async () => {
    const ends: string[] = [];
    const send = async (name: string, bytes: Buffer) => {
      await pictures.compress(bytes, name);
      ends.push(name);
    };
    const first = send('first', heavy);
    while (sharp.counters().process === 0) await setImmediate();
    const later = ['second', 'third', 'fourth'].map((name) => send(name, heavy));
    const ordinary = Array.from({ length: 6 }, () => send('ordinary', onePixel()));
    await Promise.all([first, ...later, ...ordinary]);
    expect(ends.filter((name) => name !== 'ordinary')).toEqual(['first', 'second', 'third', 'fourth']);
    expect(ends.lastIndexOf('ordinary')).toBeLessThan(ends.indexOf('second'));
  });

  it('count among those that wait, in all', async () => {
    const sent = Array.from({ length: 20 }, (_, place) => pictures.compress(heavy, senderOf(place)));
    // Once this one is done their headers are read, and they wait for one another.
    await pictures.compress(onePixel(), 'marker');
    const ends = await Promise.allSettled(
      Array.from({ length: 40 }, (_, place) => pictures.compress(onePixel(), senderOf(place))),
    );
    const refused = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason] : []));
    // 19 wait for the first of them: there is room for 13 more, and for one or two that need not wait.
    expect(refused.length).toBeGreaterThanOrEqual(24);
    expect(refused.length).toBeLessThanOrEqual(26);
    for (const reason of refused) expect(reason).toMatchObject(overloaded);
    expect(await Promise.all(sent)).toHaveLength(20);
  });
});
