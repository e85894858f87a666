import { createRequire } from 'node:module';
import type * as words from '@zxcvbn-ts/language-common';
import { z } from 'zod';

const charactersMin = 8;
const bytesMax = 1_024;
const givenBytesMax = bytesMax * 4;

function commonPasswords(): ReadonlySet<string> {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- what the package says of itself
  const { dictionary } = createRequire(import.meta.url)('@zxcvbn-ts/language-common') as typeof words;
  return new Set(dictionary['passwords-common']);
}

/** Unpacked once they are asked for: they come to megabytes. */
let common: ReadonlySet<string> | undefined;

function isCommon(text: string): boolean {
  common ??= commonPasswords();
  return common.has(text.toLowerCase());
}

/** Printable, and neither letter, digit nor space. */
const special = /[^\p{L}\p{N}\p{Z}\p{C}\p{M}]/u;

/** A new password, by the rules of the organization. Rules: PASSWORD-1 to PASSWORD-3. */
export const newPassword = z
  .string()
  .refine((text) => Buffer.byteLength(text) <= bytesMax, { error: `must have at most ${bytesMax} bytes`, abort: true })
  .refine(
    (text) => [...text.normalize('NFC')].length >= charactersMin,
    `must have at least ${charactersMin} characters`,
  )
  .refine((text) => /\p{Lu}/u.test(text), 'must hold an upper-case letter')
  .refine((text) => /\p{Ll}/u.test(text), 'must hold a lower-case letter')
  .refine((text) => /\p{Nd}/u.test(text), 'must hold a digit')
  .refine((text) => special.test(text), 'must hold a special character')
  .refine((text) => !isCommon(text), 'is one of the most common passwords: choose another')
  .meta({
    description: `At least ${charactersMin} characters, among them an upper-case and a lower-case letter, a digit and a special character; at most ${bytesMax} bytes of UTF-8. Common passwords are refused.`,
    minLength: charactersMin,
    maxLength: bytesMax,
    examples: ['Correct-Horse-7'],
  });

/** A password as somebody gives it to prove who they are; no rule but a bound. */
export const givenPassword = z
  .string()
  .refine((text) => Buffer.byteLength(text) <= givenBytesMax, `must have at most ${givenBytesMax} bytes`)
  .meta({ maxLength: givenBytesMax, examples: ['Correct-Horse-7'] });
