import { domainToASCII, domainToUnicode } from 'node:url';
import { z } from 'zod';

const octetsMax = 254;
const localOctetsMax = 64;
const dotAtom = /^[a-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[a-z0-9!#$%&'*+/=?^_`{|}~-]+)*$/;
/** Of ASCII nothing else: `domainToASCII` reads like a browser, and drops a path, a query, tabs and what % stands for. */
const domainCharacters = /^(?:[a-z0-9.-]|\P{ASCII})+$/u;
const label = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const allDigits = /^\d+$/;

function isDomain(domain: string): boolean {
  const labels = domain.split('.');
  return labels.length > 1 && labels.every((part) => label.test(part)) && !allDigits.test(labels.at(-1) ?? '');
}

/**
 * Returns the normal form of an e-mail address: trimmed, NFC, lower case, the domain in its IDNA form. `null` for any
 * text that a mail library might deliver to another address. Rules: USER-9, USER-11, USER-12.
 */
export function normalizeEmail(given: string): string | null {
  // Before anything whose time grows faster than the text.
  if (Buffer.byteLength(given) > octetsMax * 2) return null;
  const text = given.trim().normalize('NFC').toLowerCase();
  const at = text.lastIndexOf('@');
  const local = text.slice(0, at);
  if (at < 1 || local.length > localOctetsMax || !dotAtom.test(local)) return null;
  const givenDomain = text.slice(at + 1);
  if (!domainCharacters.test(givenDomain)) return null;
  const domain = domainToASCII(givenDomain);
  const email = `${local}@${domain}`;
  return isDomain(domain) && Buffer.byteLength(email) <= octetsMax ? email : null;
}

/**
 * Returns the normal form of an address that another system vouches for: only if it is in that form already, except for
 * ASCII capitals, or if its domain is the exact Unicode form. `null` for any other, since folding it could make it the
 * address of another person: U+212A is no `k` to a provider. Rule: ADDRESS-9.
 */
export function vouchedEmail(given: string): string | null {
  const email = normalizeEmail(given);
  if (email === null) return null;
  const spelled = given.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  const domain = domainOf(email);
  const unicode = email.slice(0, -domain.length) + domainToUnicode(domain);
  return spelled === email || spelled === unicode ? email : null;
}

/** An address as it may be shown to another person, who recognizes it only as the owner: first character and domain. */
export function maskedEmail(email: string): string {
  return `${email.slice(0, 1)}…@${domainOf(email)}`;
}

const form = { format: 'email', maxLength: octetsMax };

/** An e-mail address in a request; its one spelling comes out. */
export const emailAddress = z
  .string()
  .transform((given, context) => {
    const email = normalizeEmail(given);
    if (email !== null) return email;
    context.addIssue({ code: 'custom', message: 'must be a valid e-mail address' });
    return z.NEVER;
  })
  .meta({ ...form, examples: ['grace@example.com'] });

/** An e-mail address in a response. */
export const emailResponse = z.string().meta(form);

/** The domain part of a normalized address. */
export function domainOf(email: string): string {
  return email.slice(email.lastIndexOf('@') + 1);
}
