import type { FastifyReply, FastifyRequest } from 'fastify';
import { ApiError, refuseTooMany } from '../../base/errors.ts';
import { KeyedCounter } from '../../base/keyed-counter.ts';
import { networkOf } from '../../limits/limits.ts';
import { clientAddress } from '../client-address.ts';
import { scopeOf } from './request-scope.ts';

/** Bytes of a response that fit into the kernel's buffer of a connection. */
const freeBytes = 65_536;
const mebibyte = 1_048_576;
/** Bytes of larger responses that may wait for one reader. */
const ofOneBytesMax = 32 * mebibyte;
const ofStrangerBytesMax = 16 * mebibyte;
const retryAfterSeconds = 5;

/**
 * Budget of memory for responses that are written in one piece: a reader may take a minute over one, or never read it,
 * and open many connections. Streamed responses are not counted: their memory is bounded by their number. Rule:
 * HTTP-34.
 */
class ResponseBudget {
  readonly #bytesMax: number;
  readonly #ofOneBytesMax: number;
  readonly #held = new KeyedCounter('answer bytes');

  constructor(bytesMax: number, ofOneMax: number) {
    this.#bytesMax = bytesMax;
    this.#ofOneBytesMax = ofOneMax;
  }

  /** Throws `tooManyRequests` where this reader has too much waiting, and `overloaded` where all together have. */
  admit(bytes: number, reader: string): KeyedCounter {
    if (this.#held.of(reader) + bytes > this.#ofOneBytesMax)
      throw refuseTooMany(this.#ofOneBytesMax, retryAfterSeconds);
    if (this.#held.all + bytes > this.#bytesMax) {
      throw new ApiError('overloaded', { headers: { 'retry-after': String(retryAfterSeconds) } });
    }
    return this.#held;
  }
}

/** Returns the hook that reserves memory for a response until it is sent. */
export function responseBudgets(): (payload: unknown, request: FastifyRequest, reply: FastifyReply) => void {
  const known = new ResponseBudget(256 * mebibyte, ofOneBytesMax);
  const unknown = new ResponseBudget(64 * mebibyte, ofStrangerBytesMax);
  return (payload, request, reply) => {
    const isWhole = typeof payload === 'string' || Buffer.isBuffer(payload);
    if (!isWhole || payload.length <= freeBytes) return;
    const bytes = Buffer.byteLength(payload);
    const { caller } = request;
    const isKnown = caller && 'userId' in caller;
    const reader = isKnown ? caller.userId : networkOf(clientAddress(request));
    (isKnown ? known : unknown).admit(bytes, reader).take(scopeOf(request, reply), reader, bytes);
  };
}
