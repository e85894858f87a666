import { z } from 'zod';

const textMax = 255;
/** Control characters, and the marks that turn the reading direction of what follows. */
const unprintable = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;

/** How many code points a text has. */
function length(text: string): number {
  return [...text].length;
}

/**
 * Text as people write it, on one line: trimmed, NFC, of `min` to `max` code points, without control characters, lone
 * surrogates or direction overrides. Rule: USER-13.
 */
export function plainText({ min = 1, max = textMax }: { readonly min?: number; readonly max?: number } = {}) {
  return z
    .string()
    .max(max * 16, `must have at most ${max} characters`)
    .refine((text) => text.isWellFormed() && !unprintable.test(text.trim()), {
      error: 'must not hold control characters or direction overrides',
      abort: true,
    })
    .transform((text) => text.normalize('NFC').trim())
    .refine((text) => length(text) >= min, min === 1 ? 'must not be empty' : `must have at least ${min} characters`)
    .refine((text) => length(text) <= max, `must have at most ${max} characters`);
}

/** An optional text: absent, `null` and empty all mean that there is none. */
export const optionalText = z
  .union([z.null(), plainText({ min: 0 })])
  .optional()
  .transform((text) => text || null);

/** A telephone number. Rule: USER-8. */
export const optionalMobile = z
  .union([
    z.null(),
    z.literal(''),
    z.string().regex(/^\+?[0-9]{10,15}$/, 'must be 10 to 15 digits, optionally after a +'),
  ])
  .optional()
  .transform((mobile) => mobile || null);

const addressLine = plainText({ min: 0 }).optional();

/** A postal address, as it comes in and goes out. Rule: ORG-8. */
export const address = z.object({
  addressLine1: addressLine,
  city: addressLine,
  state: addressLine,
  country: addressLine,
  postCode: addressLine,
});
