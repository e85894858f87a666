import { z } from 'zod';
import { systemClock } from '../../../server/src/base/clock.ts';
import { idPattern } from '../../../server/src/base/ids.ts';
import { type CredentialHash, credentialHashOf } from '../../../server/src/base/secret.ts';

const secondMs = 1_000;
const isoTime = z.union([z.iso.datetime({ offset: true }), z.iso.date()]);
const numberText = /^-?\d{1,16}$/;

/** Returns the value of a `$` key of MongoDB's extended JSON; `undefined` for anything else. */
function extended(given: unknown, key: string): unknown {
  const isObject = typeof given === 'object' && given !== null && Object.hasOwn(given, key);
  return isObject ? (Object.entries(given).find(([name]) => name === key)?.[1] ?? undefined) : undefined;
}

/** Makes a schema from a function `read`; `undefined` from it is an invalid value. */
function reading<T>(read: (given: unknown) => T | undefined, message: string) {
  return (given: unknown, context: z.core.$RefinementCtx): T => {
    const found = read(given);
    if (found !== undefined) return found;
    context.addIssue({ code: 'custom', message });
    return z.NEVER;
  };
}

/** A value that is read in a way of our own. */
function value<T>(read: (given: unknown) => T | undefined, message: string) {
  return z.unknown().transform(reading(read, message));
}

/** The same, where absent and `null` both are `null`. */
function optional<T>(read: (given: unknown) => T | undefined, message: string) {
  const orNull = (given: unknown) => (given === undefined || given === null ? null : read(given));
  return z.unknown().optional().transform(reading(orNull, message));
}

function toId(given: unknown): string | undefined {
  const text = extended(given, '$oid') ?? given;
  return typeof text === 'string' && idPattern.test(text) ? text.toLowerCase() : undefined;
}

function toMs(given: unknown): number | null {
  const date = extended(given, '$date') ?? given;
  const long = extended(date, '$numberLong') ?? date;
  if (typeof long === 'number') return Number.isSafeInteger(long) ? long : null;
  if (typeof long !== 'string') return null;
  if (long !== date) return numberText.test(long) ? Number(long) : null;
  const parsed = isoTime.safeParse(long);
  return parsed.success ? Date.parse(parsed.data) : null;
}

/** From 1970 to the end of year 9999, the range of timestamps. */
const timeEnd = 253_402_300_800 * secondMs;

function toTime(given: unknown): number | undefined {
  const ms = toMs(given);
  return ms !== null && ms >= 0 && ms < timeEnd ? ms : undefined;
}

/** A moment that has passed: one in the future would be newer than all that is changed here until then. Rule: ADDRESS-17. */
function toPast(given: unknown): number | undefined {
  const ms = toTime(given);
  return ms === undefined ? undefined : Math.min(ms, systemClock.now());
}

const hexHash = /^[0-9a-f]{64}$/i;
const base64Hash = /^[A-Za-z0-9+/_-]{43}=?$/;

function toHash(given: unknown): CredentialHash | undefined {
  if (typeof given !== 'string') return undefined;
  if (hexHash.test(given)) return credentialHashOf(Buffer.from(given, 'hex'));
  return base64Hash.test(given) ? credentialHashOf(Buffer.from(given, 'base64')) : undefined;
}

const noId = 'must be 24 hexadecimal digits';
const noTime = 'must be a date and time, such as 2026-11-27T20:17:00.123Z';
const nevers: readonly unknown[] = [null, 'Never', 'never'];

/** An id: 24 hexadecimal digits, or `{ "$oid": … }` of them; lower case comes out. */
export const dumpId = value(toId, noId);

/** An id, or `null`; absent is `null`, too. */
export const optionalDumpId = optional(toId, noId);

/**
 * A moment: a date and time of ISO 8601 with its offset, milliseconds since 1970, or `{ "$date": … }` of either;
 * milliseconds come out, now for one in the future.
 */
export const dumpTime = value(toPast, noTime);

/** A time, or `null`; absent is `null`, too. */
export const optionalDumpTime = optional(toPast, noTime);

/** Expiry of a token: a time, or `null`, `"Never"` and `"never"` for none. Required. */
export const dumpExpiry = value(
  (given) => (nevers.includes(given) ? null : toTime(given)),
  'must be a date and time, "Never" or null',
);

/** SHA-256 of a token: 64 hexadecimal digits, base64 or base64url; base64url comes out. */
export const dumpHash = value(toHash, 'must be a SHA-256, in hexadecimal digits, base64 or base64url');
