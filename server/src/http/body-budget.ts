import type { IncomingMessage } from 'node:http';
import { RefusedError } from '../errors.ts';
import { Shares } from '../shares.ts';

/** So small a body may always arrive: what a connection itself takes is of the same size. */
const freeBytes = 16_384;
const mebibyte = 1_048_576;
/** Of larger bodies, so much of one sender may be on its way at once. */
const ofOneBytesMax = 16 * mebibyte;

/** How large a body is going to be, as far as that was said; `limit` where it comes in chunks. */
function expectedBytes({ headers }: IncomingMessage, limit: number): number {
  return headers['transfer-encoding'] === undefined ? Number(headers['content-length'] ?? 0) : limit;
}

/**
 * The memory for bodies that are on their way. A body may take half a minute to arrive, or never do; those that say
 * that they are large wait in memory, so only so many may at once. Rule: HTTP-30.
 */
class BodyBudget {
  readonly #bytesMax: number;
  readonly #bySender = new Shares();
  #all = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /**
   * Sets memory aside for a body. Throws `overloaded` where there is none left.
   * @param sender a user id, or the network of somebody unknown
   * @returns what gives it back; null where there is nothing to give back
   */
  reserve(message: IncomingMessage, limit: number, sender: string): (() => void) | null {
    const bytes = expectedBytes(message, limit);
    if (bytes <= freeBytes) return null;
    if (this.#all + bytes > this.#bytesMax || this.#bySender.of(sender) + bytes > ofOneBytesMax) {
      throw new RefusedError('overloaded', { headers: { 'retry-after': '5' } });
    }
    this.#all += bytes;
    this.#bySender.take(sender, bytes);
    return () => this.#giveBack(sender, bytes);
  }

  #giveBack(sender: string, bytes: number): void {
    this.#all -= bytes;
    this.#bySender.giveBack(sender, bytes);
  }
}

/** Strangers cannot use up what is there for people. */
export interface BodyBudgets {
  readonly known: BodyBudget;
  readonly unknown: BodyBudget;
}

/** The budgets of one service. */
export function bodyBudgets(): BodyBudgets {
  return { known: new BodyBudget(128 * mebibyte), unknown: new BodyBudget(32 * mebibyte) };
}
