import { z } from 'zod';

const charactersMin = 8;
const bytesMax = 1_024;
const givenBytesMax = bytesMax * 4;

/** A printable character other than a letter, a digit or a space. */
const special = /[^\p{L}\p{N}\p{Z}\p{C}\p{M}]/u;

/** A new password, by the rules of its form; `requireStrong` looks at how soon guessing finds it. Rules: PASSWORD-1 to PASSWORD-3. */
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
  .meta({
    description: `At least ${charactersMin} characters, among them an upper-case and a lower-case letter, a digit and a special character; at most ${bytesMax} bytes of UTF-8. What guessing finds quickly is refused: common passwords, patterns, words, places and names with a year or digits, and names of the account and its organization.`,
    minLength: charactersMin,
    maxLength: bytesMax,
    // Refused as a new one (PASSWORD-20): what a document shows is known.
    examples: ['Correct-Horse-7'],
  });

/** A password that a user enters as proof; checked for its length only. */
export const givenPassword = z
  .string()
  .refine((text) => Buffer.byteLength(text) <= givenBytesMax, `must have at most ${givenBytesMax} bytes`)
  .meta({ maxLength: givenBytesMax, examples: ['Correct-Horse-7'] });
