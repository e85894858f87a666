import type { IncomingMessage } from 'node:http';
import { type InputProblem, RefusedError, refuseInput } from '../errors.ts';

/** Headers beyond this many are refused rather than dropped. */
export const headersMax = 100;
/** Bytes of a JSON body. */
export const bodyBytesMax = 1_048_576;

const levelsMax = 32;
const singular = new Set(['host', 'authorization', 'content-type']);
const singularLengths = new Set([...singular].map((name) => name.length));
const forbiddenKeys = new Set(['__proto__', 'constructor', 'prototype']);
const requestIdForm = /^[A-Za-z0-9._:-]{1,64}$/;

/** The caller's `x-request-id` where it has the allowed form. Rule: HTTP-8. */
export function givenRequestId(message: IncomingMessage): string | undefined {
  const given = message.headers['x-request-id'];
  return typeof given === 'string' && requestIdForm.test(given) ? given : undefined;
}

/** Whether a body was announced; it may yet turn out to be empty. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/**
 * Refuses versions that Node parses but nobody speaks, and transfer codings other than `chunked`, which Node takes for
 * plain bytes: a proxy in front may see another message there (RFC 9112, section 6.1). Rule: HTTP-25.
 */
function checkFraming({ httpVersion, headers }: IncomingMessage): void {
  const coding = headers['transfer-encoding'];
  const isSpoken = httpVersion === '1.1' || (httpVersion === '1.0' && coding === undefined);
  if (isSpoken && (coding === undefined || coding.toLowerCase() === 'chunked')) return;
  throw new RefusedError('unreadableRequest', { headers: { connection: 'close' } });
}

/** How often a header may occur that decides who asks for what; a name's length rules most others out at once. */
function checkSingular(rawHeaders: readonly string[]): void {
  let seen = '';
  for (let place = 0; place < rawHeaders.length; place += 2) {
    const given = rawHeaders[place] ?? '';
    if (!singularLengths.has(given.length)) continue;
    const name = given.toLowerCase();
    if (!singular.has(name)) continue;
    if (seen.includes(name)) throw new RefusedError('doubledHeader', { params: { header: name } });
    seen += ` ${name}`;
  }
}

/**
 * The rules that come before everything else, authentication included: headers that may occur once only, their number,
 * the encoding and the announced size of the body. Node accepts or trims all of these silently. Rules: HTTP-11,
 * HTTP-24 to HTTP-27.
 */
export function checkMessage(message: IncomingMessage): void {
  const { rawHeaders, headers } = message;
  if (rawHeaders.length > headersMax * 2) throw new RefusedError('headersTooLarge');
  checkSingular(rawHeaders);
  if (headers.host === undefined && message.httpVersion !== '1.0') throw new RefusedError('hostMissing');
  checkFraming(message);
  const encoding = headers['content-encoding'];
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity') throw new RefusedError('bodyEncoded');
  const announced = headers['content-length'];
  if (announced !== undefined && Number(announced) > bodyBytesMax) throw refuseSize();
}

/** The refusal for a body over the limit. */
export function refuseSize(): RefusedError {
  return new RefusedError('bodyTooLarge', { params: { limit: bodyBytesMax } });
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const jsonType = /^application\/json\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?;?\s*$/i;

function decode(bytes: Buffer): string {
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

/** Whether text can be stored and returned as it is. */
function isStorable(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0');
}

/** Counts the members of all objects, refusing what no value may hold. */
class ValueWalk {
  members = 0;

  visit(value: unknown, field: string, level: number): InputProblem | null {
    if (typeof value === 'string' && !isStorable(value)) {
      return { field, message: 'must not hold NUL or unpaired surrogates' };
    }
    if (typeof value !== 'object' || value === null) return null;
    if (level > levelsMax) return { field, message: `must not nest deeper than ${levelsMax} levels` };
    for (const [key, item] of Object.entries(value)) {
      if (!Array.isArray(value)) this.members += 1;
      const problem = forbiddenKeys.has(key)
        ? { field: `${field}.${key}`, message: 'is not allowed as a name' }
        : (this.visit(key, field, level) ?? this.visit(item, `${field}.${key}`, level + 1));
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
 * Reads a JSON body: UTF-8, no name twice, at most 32 levels, no names that reach for prototypes. An empty body is no
 * body, whatever its type says. Rules: HTTP-12, HTTP-13, HTTP-15 to HTTP-17.
 */
export function readJsonBody(contentType: string | undefined, bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  if (contentType === undefined || !jsonType.test(contentType)) throw new RefusedError('bodyNotJson');
  const text = decode(bytes);
  const value = parse(text);
  const walk = new ValueWalk();
  const problem = walk.visit(value, 'body', 1);
  if (problem) throw refuseInput(problem);
  if (countNames(text) !== walk.members) throw refuseInput({ field: 'body', message: 'must not name a member twice' });
  return value;
}

/** Refuses query parameters whose names reach for prototypes. Rule: HTTP-15. */
export function checkQueryNames(query: Readonly<Record<string, unknown>>): void {
  for (const name of Object.keys(query)) {
    if (forbiddenKeys.has(name)) throw refuseInput({ field: `query.${name}`, message: 'is not allowed as a name' });
  }
}
