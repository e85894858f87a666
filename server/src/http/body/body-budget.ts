import type { IncomingMessage } from 'node:http';
import { ApiError, refuseTooMany } from '../../base/errors.ts';
import { KeyedCounter } from '../../base/keyed-counter.ts';
import type { Scope } from '../../base/scope.ts';

/** A body of this size may always arrive: a connection itself needs as much. */
const freeBytes = 16_384;
const mebibyte = 1_048_576;
/** Of larger bodies, so much of one sender may be on its way at once. */
const ofOneBytesMax = 16 * mebibyte;
const retryAfterSeconds = 5;

/** Returns the announced size of a body; `limit` for a chunked one. */
function expectedBytes({ headers }: IncomingMessage, limit: number): number {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : limit;
}

interface AnnouncedBody {
  readonly message: IncomingMessage;
  /** Bytes that the body may have at most. */
  readonly limit: number;
  readonly sender: string;
}

/**
 * Budget of memory for bodies that are arriving. A body may take half a minute to arrive, or never do; large ones wait
 * in memory, so their total is limited. Rule: HTTP-30.
 */
class BodyBudget {
  readonly #bytesMax: number;
  readonly #held = new KeyedCounter('body bytes');

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /**
   * Sets memory aside for a body until its request is over. Throws `tooManyRequests` where the sender has no more of it,
   * and `overloaded` where there is none left at all.
   * @param scope asked for where there is something to hold
   * @param sender a user id, or the network of a caller without a credential
   */
  reserve(scope: () => Scope, { message, limit, sender }: AnnouncedBody): void {
    const bytes = expectedBytes(message, limit);
    if (bytes <= freeBytes) return;
    if (this.#held.of(sender) + bytes > ofOneBytesMax) throw refuseTooMany(ofOneBytesMax, retryAfterSeconds);
    if (this.#held.all + bytes > this.#bytesMax) {
      throw new ApiError('overloaded', { headers: { 'retry-after': String(retryAfterSeconds) } });
    }
    this.#held.take(scope(), sender, bytes);
  }
}

/** Separate budgets, so that strangers cannot use up that of users. */
export interface BodyBudgets {
  readonly known: BodyBudget;
  readonly unknown: BodyBudget;
}

/** The budgets of one service. */
export function bodyBudgets(): BodyBudgets {
  return { known: new BodyBudget(128 * mebibyte), unknown: new BodyBudget(32 * mebibyte) };
}
