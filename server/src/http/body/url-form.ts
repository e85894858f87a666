import { refuseInput } from '../../base/errors.ts';
import { closestName } from '../../text/closest.ts';
import { checkQuery, decode } from '../request-rules.ts';

const formType = /^application\/x-www-form-urlencoded[ \t]*(;|$)/i;
const fieldsMax = 50;

/** Returns whether a body is a form of names and texts. */
export function isFormType(contentType: string | undefined): boolean {
  return contentType !== undefined && formType.test(contentType);
}

/** A name or a value as it is meant: `+` is a space, the rest is percent-encoded UTF-8. */
function meant(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    throw refuseInput({ field: 'body', message: 'must be percent-encoded UTF-8' });
  }
}

function fieldOf(pair: string): readonly [string, string] {
  const equals = pair.indexOf('=');
  return equals < 0 ? [meant(pair), ''] : [meant(pair.slice(0, equals)), meant(pair.slice(equals + 1))];
}

/**
 * Reads a form: each name once, no names that reach for prototypes. A field without a value is none (RFC 6749, section
 * 3.2), but for a scope: an empty one must not stand for all there are. Rules: HTTP-13, HTTP-15, HTTP-17, SERVICE-20.
 */
export function readForm(bytes: Buffer): Readonly<Record<string, string>> | undefined {
  if (bytes.length === 0) return undefined;
  // Split no further than to the first one too many: a body can contain half a million of them.
  const pairs = decode(bytes).split('&', fieldsMax + 1);
  if (pairs.length > fieldsMax) throw refuseInput({ field: 'body', message: `must have at most ${fieldsMax} fields` });
  const fields = pairs.filter((pair) => pair !== '').map(fieldOf);
  if (new Set(fields.map(([name]) => name)).size < fields.length) {
    throw refuseInput({ field: 'body', message: 'must not name a field twice' });
  }
  const form = Object.fromEntries(fields);
  checkQuery(form, 'body');
  return Object.fromEntries(fields.filter(([name, value]) => value !== '' || closestName(name, ['scope']) !== null));
}
