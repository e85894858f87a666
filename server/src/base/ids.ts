import { randomBytes } from 'node:crypto';
import type { Clock } from './clock.ts';

/**
 * Form of every identifier on the wire: 24 hexadecimal digits, in either case. Ids are stored and returned in lower
 * case.
 */
export const idPattern = /^[a-fA-F0-9]{24}$/;

/** Makes identifiers of 24 lower-case hexadecimal digits. */
export type NewId = () => string;

const randomMax = 2 ** 48;

/**
 * A generator whose ids sort in the order in which they were made by this process: 48 bits of milliseconds, then 48 bits
 * that start at random in each millisecond and count up within it. A clock that steps back doesn't disturb the order.
 * Ids name things; they are never secrets.
 */
export function idGenerator(clock: Clock): NewId {
  let lastMs = 0;
  let tail = 0;
  return () => {
    const ms = Math.max(clock.now(), lastMs);
    const fresh = ms > lastMs || tail + 1 >= randomMax;
    lastMs = fresh && ms === lastMs ? ms + 1 : ms;
    // The top bit of a fresh tail is left clear, so that counting up has room.
    tail = fresh ? randomBytes(6).readUIntBE(0, 6) % (randomMax / 2) : tail + 1;
    return lastMs.toString(16).padStart(12, '0') + tail.toString(16).padStart(12, '0');
  };
}
