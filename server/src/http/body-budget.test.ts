import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { RefusedError } from '../errors.ts';
import { bodyBudgets } from './body-budget.ts';

const mebibyte = 1_048_576;

function message(headers: IncomingMessage['headers']): IncomingMessage {
  const made = new IncomingMessage(new Socket());
  made.headers = headers;
  return made;
}

const announced = (bytes: number) => message({ 'content-length': String(bytes) });
const chunked = message({ 'transfer-encoding': 'chunked' });

describe('memory for bodies on their way (HTTP-30)', () => {
  it('is not asked for by small bodies, nor by none', () => {
    const { unknown } = bodyBudgets();
    for (let count = 0; count < 10_000; count += 1) {
      unknown.reserve(announced(16_384), mebibyte, 'a');
      unknown.reserve(message({}), mebibyte, 'a');
    }
    expect(() => unknown.reserve(announced(16 * mebibyte), mebibyte, 'a')).not.toThrow();
  });

  it('one sender has 16 MiB, whatever the others have', () => {
    const { known } = bodyBudgets();
    const held = Array.from({ length: 16 }, () => known.reserve(announced(mebibyte), mebibyte, 'a'));
    const refused = () => known.reserve(announced(16_385), mebibyte, 'a');
    expect(refused).toThrow(RefusedError);
    expect(() => known.reserve(announced(mebibyte), mebibyte, 'b')).not.toThrow();
    held[0]?.();
    expect(refused).not.toThrow();
  });

  it('all together have 128 MiB, and without a credential 32 MiB', () => {
    const { known, unknown } = bodyBudgets();
    const take = (budget: typeof known, count: number) => {
      for (let sender = 0; sender < count; sender += 1) budget.reserve(announced(mebibyte), mebibyte, String(sender));
    };
    take(known, 128);
    take(unknown, 32);
    for (const budget of [known, unknown]) {
      const refused = expect.objectContaining({ refusal: 'overloaded', headers: { 'retry-after': '5' } });
      expect(() => budget.reserve(announced(mebibyte), mebibyte, 'one more')).toThrow(refused);
    }
  });

  it('a body in chunks may become as large as any', () => {
    const { unknown } = bodyBudgets();
    for (let count = 0; count < 16; count += 1) unknown.reserve(chunked, mebibyte, 'a');
    expect(() => unknown.reserve(chunked, mebibyte, 'a')).toThrow(RefusedError);
  });

  it('what is given back can be had again, to the last byte', () => {
    const { known } = bodyBudgets();
    for (let round = 0; round < 1_000; round += 1) {
      const releases = Array.from({ length: 16 }, () => known.reserve(announced(mebibyte), mebibyte, 'a'));
      for (const release of releases) release?.();
    }
    expect(() => known.reserve(announced(16 * mebibyte), mebibyte, 'a')).not.toThrow();
  });
});
