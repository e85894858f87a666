import { z } from 'zod';
import { components, jsonSchema } from '../http/schemas.ts';

/** Code points that a text has at most. */
export const textMax = 255;
/** Control characters, and the marks that turn the reading direction of what follows. */
const unprintable = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/u;

/** Returns the number of code points of a text. */
function length(text: string): number {
  return [...text].length;
}

/**
 * Text on one line: trimmed, NFC, of `min` to `max` code points, without control characters, lone surrogates or
 * direction overrides. Rule: USER-13.
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
    .refine((text) => length(text) <= max, `must have at most ${max} characters`)
    .meta({ ...(min > 0 ? { minLength: min } : {}), maxLength: max });
}

/**
 * Text as it is compared where case must not matter: texts that differ in nothing but case are equal afterwards, in
 * Turkish too.
 */
export function foldCase(text: string): string {
  // Lowered first: ẞ is upper case already, and becomes SS as ß does only by way of that.
  const folded = text.toLowerCase().toUpperCase().toLowerCase();
  // İ became i with a dot above; ı and I are i by now.
  return folded
    .replaceAll('ς', 'σ')
    .replaceAll(/i\u0307+/g, 'i')
    .normalize('NFC');
}

/** Search text of a list: plain text, folded; absent and empty both mean that everything is listed. Rule: USER-16. */
export const searchText = plainText({ min: 0 }).transform(foldCase).optional();

/** A text that may be cleared: `null` and empty both mean that there is to be none. Rule: USER-29. */
export const clearableText = plainText({ min: 0 })
  .nullable()
  .transform((text) => text || null);

/** An optional text: absent, `null` and empty all mean that there is none. */
export const optionalText = clearableText.optional().transform((text) => text ?? null);

/** A telephone number that may be cleared. Rules: USER-8, USER-29. */
export const clearableMobile = z
  .string()
  .regex(/^(\+?[0-9]{10,15})?$/, 'must be 10 to 15 digits, optionally after a +')
  .nullable()
  .transform((mobile) => mobile || null);

/** A telephone number; absent, `null` and empty all mean that there is none. */
export const optionalMobile = clearableMobile.optional().transform((mobile) => mobile ?? null);

/** `null` and empty both mean that there is no such line. Rule: USER-29. */
const line = clearableText.optional().transform((text) => text ?? undefined);

/** A postal address in a request. Rule: ORG-8. */
export const address = z.object({
  addressLine1: line.meta({ examples: ['12 St James Square'] }).optional(),
  city: line.meta({ examples: ['London'] }).optional(),
  state: line.meta({ examples: ['Greater London'] }).optional(),
  country: line.meta({ examples: ['United Kingdom'] }).optional(),
  postCode: line.meta({ examples: ['SW1Y 4JH'] }).optional(),
});

/** A postal address that may be cleared, by `null` or `""`. Rules: USER-29, USER-30. */
export const clearableAddress = z
  .preprocess((given) => (given === '' ? null : given), address.nullable())
  .meta(jsonSchema(z.union([address, z.null(), z.literal('')]), 'input'));

/** A postal address as it is stored; `null` for none. */
export function storedAddress(given: z.output<typeof address> | null | undefined): string | null {
  return given ? JSON.stringify(given) : null;
}

const lineResponse = z.string().optional();

/** A postal address in a response. */
export const addressResponse = z.object({
  addressLine1: lineResponse,
  city: lineResponse,
  state: lineResponse,
  country: lineResponse,
  postCode: lineResponse,
});
components.add(addressResponse, { id: 'Address' });

/** A postal address as it goes out, of the JSON that is stored; `undefined` without one. */
export function toAddress(stored: string | null): z.output<typeof addressResponse> | undefined {
  if (stored === null) return undefined;
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what is stored has passed `address`
  return JSON.parse(stored) as z.output<typeof addressResponse>;
}
