import type { IncomingMessage } from 'node:http';
import { ApiError, type InputProblem, refuseInput } from '../base/errors.ts';

/** Headers beyond this number are rejected rather than dropped. */
export const headersMax = 100;
/** Characters of the headers together with the address. */
const headerLengthMax = 16_384;
/** Bytes up to which headers are read: those that are too long get a response like any other. */
export const headerBytesRead = 2 * headerLengthMax;
/** Bytes of a JSON body. */
export const bodyBytesMax = 1_048_576;

const contentTypeMax = 200;
const levelsMax = 32;
/** Far more than any operation needs, and few enough to be checked in some milliseconds. */
const valuesMax = 20_000;
const marksMax = 2 * valuesMax;
const tooManyValues = { field: 'body', message: `must not hold more than ${valuesMax} values` };
const unstorable = 'must not hold NUL or unpaired surrogates';
const singular = new Set(['host', 'authorization', 'content-type']);
const singularLengths = new Set([...singular].map((name) => name.length));
const forbiddenKeys = new Set(['__proto__', 'constructor', 'prototype']);
const requestIdForm = /^[A-Za-z0-9._:-]{1,64}$/;

/** The caller's `x-request-id` where it has the allowed form. Rule: HTTP-8. */
export function givenRequestId(message: IncomingMessage): string | undefined {
  const given = message.headers['x-request-id'];
  return typeof given === 'string' && requestIdForm.test(given) ? given : undefined;
}

/** Returns whether a body was announced; it may still turn out to be empty. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/**
 * Rejects versions that Node parses but no client speaks, and transfer codings other than `chunked`, which Node takes
 * for plain bytes: a proxy in front may see another message there (RFC 9112, section 6.1). Rule: HTTP-25.
 */
function checkFraming({ httpVersion, headers, socket }: IncomingMessage): void {
  const coding = headers['transfer-encoding'];
  const isSpoken = httpVersion === '1.1' || (httpVersion === '1.0' && coding === undefined);
  if (isSpoken && (coding === undefined || coding.toLowerCase() === 'chunked')) return;
  closing.add(socket);
  throw new ApiError('unreadableRequest', { headers: { connection: 'close' } });
}

/** Connections that are about to close: what follows may be part of an earlier message, or would get no response. */
const closing = new WeakSet<object>();

/** Has nothing more processed that arrives on a connection (RFC 9112, section 9.6). Rules: HTTP-25, FIT-44. */
export function processNoMore(socket: object): void {
  closing.add(socket);
}

/**
 * Returns whether a message must not be processed, because of one before it on the same connection, which is about to
 * close.
 */
export function followsUnreadable({ socket }: IncomingMessage): boolean {
  return closing.has(socket);
}

/** Rejects a second header that decides who asks for what; comparing lengths first skips most other names. */
function checkSingular(rawHeaders: readonly string[]): void {
  let seen = '';
  for (let place = 0; place < rawHeaders.length; place += 2) {
    const given = rawHeaders[place] ?? '';
    if (!singularLengths.has(given.length)) continue;
    const name = given.toLowerCase();
    if (!singular.has(name)) continue;
    if (seen.includes(name)) throw new ApiError('doubledHeader', { params: { header: name } });
    seen += ` ${name}`;
  }
}

/** Rejects headers that are too many or too long. Rules: HTTP-27, FIT-42. */
function checkHeaderSize({ rawHeaders, url = '' }: IncomingMessage): void {
  if (rawHeaders.length > headersMax * 2) throw new ApiError('headersTooLarge');
  // Two characters after each name and each value, as they are usually sent.
  const length = rawHeaders.reduce((sum, { length: one }) => sum + one + 2, url.length);
  if (length > headerLengthMax) throw new ApiError('headersTooLarge', { headers: { connection: 'close' } });
}

/**
 * The rules that come before everything else, authentication included: headers that may occur once only, their number,
 * the encoding and the announced size of the body. Node accepts or trims all of these silently. Rules: HTTP-11,
 * HTTP-24 to HTTP-27.
 * @param bytesMax of the body
 */
export function checkMessage(message: IncomingMessage, bytesMax: number): void {
  const { rawHeaders, headers } = message;
  checkHeaderSize(message);
  checkSingular(rawHeaders);
  if (headers.host === undefined && message.httpVersion !== '1.0') throw new ApiError('hostMissing');
  checkFraming(message);
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') throw new ApiError('bodyEncoded');
  const announced = headers['content-length'];
  if (announced !== undefined && Number(announced) > bytesMax) throw refuseSize(bytesMax);
}

/** Returns the error for a body over the limit. */
export function refuseSize(limit: number): ApiError {
  return new ApiError('bodyTooLarge', { params: { limit } });
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const jsonTypes = new Set(['application/json', 'application/json;charset=utf-8', 'application/json;charset="utf-8"']);

/**
 * Returns whether a body is declared as JSON in UTF-8. Parameters may have spaces and end with a semicolon, as some
 * clients write them.
 */
function isJsonType(contentType: string): boolean {
  if (contentType.length > contentTypeMax) return false;
  if (jsonTypes.has(contentType)) return true;
  return jsonTypes.has(contentType.toLowerCase().replaceAll(/[ \t]/g, '').replace(/;$/, ''));
}

/** A body as text. Throws `invalidInput` for bytes that are no UTF-8. Rule: HTTP-13. */
export function decode(bytes: Buffer): string {
  try {
    return utf8.decode(bytes);
  } catch {
    throw refuseInput({ field: 'body', message: 'must be valid UTF-8' });
  }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw refuseInput({ field: 'body', message: 'must be valid JSON' });
  }
}

/** Returns whether text can be stored and returned unchanged. */
function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

const comma = 0x2c;
const brackets = new Set([0x5b, 0x7b]);

/**
 * Returns whether a body may contain more values than allowed, before anything is built from it. Each value but the
 * first follows a comma or an opening bracket; text is full of commas too, so this allows several times as many.
 */
function mayHoldTooMuch(bytes: Buffer): boolean {
  if (bytes.length <= valuesMax) return false;
  let marks = 0;
  for (const byte of bytes) if (byte === comma || brackets.has(byte)) marks += 1;
  return marks > marksMax;
}

/** Walks through every value of a body, counts them, and rejects forbidden ones. */
class ValueWalk {
  members = 0;
  #values = 0;

  /** Returns the problem, if any. `fieldOf` names the place, when a message needs it. */
  visit(value: unknown, level: number, fieldOf: () => string): InputProblem | null {
    this.#values += 1;
    if (this.#values > valuesMax) return tooManyValues;
    if (typeof value === 'string') return isStorable(value) ? null : { field: fieldOf(), message: unstorable };
    if (typeof value !== 'object' || value === null) return null;
    if (level > levelsMax) return { field: fieldOf(), message: `must not nest deeper than ${levelsMax} levels` };
    return Array.isArray(value) ? this.#visitItems(value, level, fieldOf) : this.#visitMembers(value, level, fieldOf);
  }

  #visitItems(items: readonly unknown[], level: number, fieldOf: () => string): InputProblem | null {
    for (const [place, item] of items.entries()) {
      const problem = this.visit(item, level + 1, () => `${fieldOf()}.${place}`);
      if (problem) return problem;
    }
    return null;
  }

  #visitMembers(value: object, level: number, fieldOf: () => string): InputProblem | null {
    for (const [name, item] of Object.entries(value)) {
      this.members += 1;
      const memberOf = () => `${fieldOf()}.${name}`;
      if (forbiddenKeys.has(name)) return { field: memberOf(), message: 'is not allowed as a name' };
      if (!isStorable(name)) return { field: fieldOf(), message: unstorable };
      const problem = this.visit(item, level + 1, memberOf);
      if (problem) return problem;
    }
    return null;
  }
}

/** In JSON that has been parsed, a string before a colon is the name of a member. */
function countNames(text: string): number {
  let count = 0;
  for (const match of text.matchAll(/"(?:[^"\\]|\\.)*"\s*(:?)/g)) if (match[1] === ':') count += 1;
  return count;
}

/**
 * Parses a JSON body: UTF-8, no duplicate names, at most 32 levels, no names that reach for prototypes. An empty body
 * is no body, whatever its type. Rules: HTTP-12, HTTP-13, HTTP-15 to HTTP-17.
 */
export function readJsonBody(contentType: string | undefined, bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  if (contentType === undefined || !isJsonType(contentType)) throw new ApiError('bodyNotJson');
  if (mayHoldTooMuch(bytes)) throw refuseInput(tooManyValues);
  const text = decode(bytes);
  const value = parse(text);
  const walk = new ValueWalk();
  const problem = walk.visit(value, 1, () => 'body');
  if (problem) throw refuseInput(problem);
  // What programs write has no spaces, and comes out as it went in: then nothing was dropped.
  if (JSON.stringify(value) === text || countNames(text) === walk.members) return value;
  throw refuseInput({ field: 'body', message: 'must not name a member twice' });
}

/**
 * Rejects parameters of a query, or fields of a form, whose names reach for prototypes, and text that cannot be stored.
 * Rules: HTTP-13, HTTP-15.
 */
export function checkQuery(query: Readonly<Record<string, unknown>>, part: 'query' | 'body' = 'query'): void {
  for (const [name, value] of Object.entries(query)) {
    const field = `${part}.${name}`;
    if (forbiddenKeys.has(name)) throw refuseInput({ field, message: 'is not allowed as a name' });
    // A repeated name has a list; other values are for the schema to reject.
    const texts: readonly unknown[] = Array.isArray(value) ? value : [value];
    const isGood = texts.every((text) => typeof text !== 'string' || isStorable(text));
    if (!isGood) throw refuseInput({ field, message: unstorable });
  }
}
