import { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { ApiError } from '../../base/errors.ts';
import { Scope } from '../../base/scope.ts';
import { bodyBudgets } from './body-budget.ts';

const mebibyte = 1_048_576;

function message(headers: IncomingMessage['headers']): IncomingMessage {
  const made = new IncomingMessage(new Socket());
  made.headers = headers;
  return made;
}

type Budget = ReturnType<typeof bodyBudgets>['known'];

/** Reserves in a scope of its own, which is answered. */
function reserve(budget: Budget, of: IncomingMessage, sender: string): Scope {
  const scope = new Scope();
  budget.reserve(() => scope, { message: of, limit: mebibyte, sender });
  return scope;
}

const announced = (bytes: number) => message({ 'content-length': String(bytes) });
const chunked = message({ 'transfer-encoding': 'chunked' });

describe('memory for bodies on their way (HTTP-30)', () => {
  it('is not asked for by small bodies, nor by none', () => {
    const { unknown } = bodyBudgets();
    for (let count = 0; count < 10_000; count += 1) {
      reserve(unknown, announced(16_384), 'a');
      reserve(unknown, message({}), 'a');
    }
    expect(() => reserve(unknown, announced(16 * mebibyte), 'a')).not.toThrow();
  });

  it('one sender has 16 MiB, whatever the others have', () => {
    const { known } = bodyBudgets();
    const held = Array.from({ length: 16 }, () => reserve(known, announced(mebibyte), 'a'));
    const refused = () => reserve(known, announced(16_385), 'a');
    expect(refused).toThrow(ApiError);
    expect(() => reserve(known, announced(mebibyte), 'b')).not.toThrow();
    held[0]?.end();
    expect(refused).not.toThrow();
  });

  it('all together have 128 MiB, and without a credential 32 MiB', () => {
    const { known, unknown } = bodyBudgets();
    const take = (budget: typeof known, count: number) => {
      for (let sender = 0; sender < count; sender += 1) reserve(budget, announced(mebibyte), String(sender));
    };
    take(known, 128);
    take(unknown, 32);
    for (const budget of [known, unknown]) {
      const refused = expect.objectContaining({ errorName: 'overloaded', headers: { 'retry-after': '5' } });
      expect(() => reserve(budget, announced(mebibyte), 'one more')).toThrow(refused);
    }
  });

  it('a body in chunks may become as large as any', () => {
    const { unknown } = bodyBudgets();
    for (let count = 0; count < 16; count += 1) reserve(unknown, chunked, 'a');
    expect(() => reserve(unknown, chunked, 'a')).toThrow(ApiError);
  });

  it('what is given back can be had again, to the last byte', () => {
    const { known } = bodyBudgets();
    for (let round = 0; round < 1_000; round += 1) {
      const scopes = Array.from({ length: 16 }, () => reserve(known, announced(mebibyte), 'a'));
      for (const scope of scopes) scope.end();
    }
    expect(() => reserve(known, announced(16 * mebibyte), 'a')).not.toThrow();
  });
});
